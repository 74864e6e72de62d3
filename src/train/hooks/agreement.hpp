// SPDX-License-Identifier: Apache-2.0
// Checks that replicas hold the same weights, bit for bit: by checksum at the start, every `every_steps` steps (at the
// next meeting), and at the end; part by part if the model is split. For strategies that promise it
// (Progress::equal_weights).
//
// A comparison is one sum over all ranks (Group::sum) of 128 bytes per part of the model; if some differ, checksums are
// gathered.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "device/arenas.hpp"
#include "exchange/strategy.hpp"
#include "parallel/mesh.hpp"
#include "train/hooks/hook.hpp"

namespace echelon::inline train {

class AgreementHook final : public Hook {
 public:
  // every_steps 0: only at the start and the end.
  AgreementHook(std::int64_t every_steps, const Mesh& mesh, const Arenas& arenas, Strategy& strategy, Group& group)
      : every_steps_(every_steps), mesh_(mesh), arenas_(arenas), strategy_(strategy), group_(group) {}

  void run_begin(std::int64_t first_step) override {
    step_ = compared_ = first_step;
    compare();
  }
  void step_end(const StepRecord& record) override {
    step_ = record.step;
    if (!record.meets || every_steps_ == 0 || step_ / every_steps_ == compared_ / every_steps_) return;
    compared_ = step_;
    compare();
  }
  void run_end(bool) override { compare(); }

 private:
  // Throws a CommonError (numeric, exit 5) that names ranks, step, parameters and checksums if replicas differ.
  void compare();
  bool all_alike();
  // `ranks` hold one part of the model, `checksums` are theirs.
  [[noreturn]] void refuse(const std::vector<int>& ranks, const std::vector<std::string>& checksums);

  std::int64_t every_steps_;
  const Mesh& mesh_;
  const Arenas& arenas_;
  Strategy& strategy_;
  Group& group_;
  std::int64_t step_ = 0, compared_ = 0;
  std::int64_t agreed_ = -1;  // the last step after which all were equal; -1: none yet
};

// Checksums compared by sums: of each of its 8 bytes the value and its square. `add_moments` adds those of one rank to
// kMoments sums; of the sums over `ranks` ranks, up to 2^22, `alike` is true if and only if all checksums are equal.
inline constexpr std::size_t kMoments = 16;
void add_moments(std::uint64_t checksum, std::span<double, kMoments> sums);
bool alike(std::span<const double, kMoments> sums, int ranks);

// Who differs from whom. `odd` is empty where all entries are equal.
struct Split {
  std::vector<int> odd;   // indices in the list that differ from `common`
  int common = 0;         // the first index of the most common entry; of equally common ones, that of index 0
  bool majority = false;  // more than half of all have it: the odd ones are wrong
};
Split split_of(const std::vector<std::string>& checksums);

}  // namespace echelon::inline train
