// The sums that an optimiser needs of the other parts of its model, in the order of ranks: every part of every replica
// ends with the same bits.
#pragma once

#include "comm/group.hpp"
#include "optim/part_sums.hpp"

namespace echelon {

class PartNorms final : public PartSums {
 public:
  // `model`: the engine of the ranks that hold one model, `slices`: of those of them that share a stage, of which one
  // `speaks`. `channel` is theirs alone on both.
  PartNorms(Engine& model, Engine& slices, int channel, bool speaks)
      : model_(model, channel), slices_(slices, channel), speaks_(speaks) {}

  bool speaks() const override { return speaks_; }
  void over_model(std::span<double> values) override { model_.sum(values); }
  void over_slices(std::span<double> values) override { slices_.sum(values); }

 private:
  Group model_, slices_;
  bool speaks_;
};

}  // namespace echelon
