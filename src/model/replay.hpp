// Runs ranges of a program's ops; on a device that records (Device::records) from recordings, each replayed with one
// launch.
//
// A recording repeats its ops with what they were told when it was taken: addresses, accumulate bits, scalars. So it
// holds for passes alone that agree in the scalars its ops read, and is taken after kWarm such passes have run op by
// op, in which libraries choose and load their kernels. Scalars that are new in every step never get that far. Ops that
// draw from the step's key, that sum over replicas or stand for what travels, or whose device says so (Op::replays) are
// never recorded.
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

  // `ops` must stay where they are. `run` runs one of them.
  Replay(Device& device, const std::vector<LoweredOp>& ops, Run run);

  // Ops [begin, end), nothing of the caller's in between. Any number of different ranges.
  void run(int begin, int end, const PassScalars& scalars);

 private:
  // What a recording was told; scalars that its ops do not read are 0.
  struct RecordedScalars {
    bool first = true;
    int slot = 0, in_flight = 0;
    double loss_scale = 0, group_weight = 0, samples = 0;
    friend bool operator==(const RecordedScalars&, const RecordedScalars&) = default;
  };
  struct Take {
    RecordedScalars recorded;
    int passes = 0;  // that ran op by op
    std::unique_ptr<Recording> recording = nullptr;
  };
  // Ops side by side that are recorded together, or one after the other are not.
  struct Piece {
    int begin = 0, end = 0;
    bool recorded = false;
    bool reads_loss_scale = false, reads_group_weight = false, reads_samples = false;
    std::vector<Take> takes = {};  // the one used last at the end
  };

  static constexpr int kWarm = 2;
  static constexpr std::size_t kMostTakes = 8;  // of a piece; beyond it the one not used for longest goes

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
