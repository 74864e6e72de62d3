// SPDX-License-Identifier: Apache-2.0
// Runs ranges of a program's ops. On a device that can record (Device::records, CUDA graphs) it uses recordings, each
// of which is one launch.
//
// A recording repeats its ops with the addresses, accumulate bits and scalars of the pass in which it was taken. It is
// valid only for passes with the same values of the scalars that its ops read, and is taken after kWarm such passes
// have run op by op, because libraries choose and load their kernels in the first ones. Scalars that change in every
// step are therefore never recorded. Ops that draw random numbers from the step's key, sums over replicas, transfers
// and ops that the device excludes (Op::replays) run one by one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "model/lowered.hpp"
#include "model/program.hpp"

namespace echelon::inline model {

class Replay {
 public:
  using Run = std::function<void(int op, const PassScalars& scalars)>;

  // `ops` must outlive this object and not move. `run` runs one of them.
  Replay(Device& device, const std::vector<LoweredOp>& ops, Run run);

  // Runs the ops [begin, end), between which the caller has no callback. Any number of different ranges.
  void run(int begin, int end, const PassScalars& scalars);

 private:
  // The scalars of a recording; scalars that its ops do not read are 0.
  struct RecordedScalars {
    bool first = true;
    int slot = 0, in_flight = 0;
    double loss_scale = 0, group_weight = 0, samples = 0;
    friend bool operator==(const RecordedScalars&, const RecordedScalars&) = default;
  };
  struct Take {
    RecordedScalars recorded;
    int passes = 0;  // number of passes that ran op by op
    std::unique_ptr<Recording> recording = nullptr;
  };
  // Consecutive ops, either all recorded as one or all run one by one.
  struct Piece {
    int begin = 0, end = 0;
    bool recorded = false;
    bool reads_loss_scale = false, reads_group_weight = false, reads_samples = false;
    std::vector<Take> takes = {};  // least recently used first
  };

  static constexpr int kWarm = 2;
  static constexpr std::size_t kMostTakes = 8;  // limit per piece, beyond which the least recently used is dropped

  std::vector<Piece> pieces_of(int begin, int end) const;
  void run_piece(Piece& piece, const PassScalars& scalars);
  void run_ops(const Piece& piece, const PassScalars& scalars);
  static Take& take_for(Piece& piece, const RecordedScalars& recorded);

  Device& device_;
  const std::vector<LoweredOp>& ops_;
  Run run_;
  std::map<std::pair<int, int>, std::vector<Piece>> ranges_;
};

}  // namespace echelon::inline model
