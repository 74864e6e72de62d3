// The sums that an optimiser needs of the other parts of its model, in the order of ranks: every part of every replica
// ends with the same bits. Both sums are collective over their ranks and block the compute thread; a message of 8 bytes
// a value to each of the other ranks. EnvironmentError of the transport.
#pragma once

#include "comm/group.hpp"
#include "optim/part_sums.hpp"

namespace echelon::inline exchange {

class PartNorms final : public PartSums {
 public:
  // `model`: the engine of the ranks that hold one model, `slices`: of those of them that share a stage, of which one
  // counts shared parameters (`counts_shared`). `channel` is theirs alone on both.
  PartNorms(Engine& model, Engine& slices, int channel, bool counts_shared)
      : model_(model, channel), slices_(slices, channel), counts_shared_(counts_shared) {}

  bool counts_shared() const override { return counts_shared_; }
  void over_model(std::span<double> values) override { model_.sum(values); }
  void over_slices(std::span<double> values) override { slices_.sum(values); }

 private:
  Group model_, slices_;
  bool counts_shared_;
};

}  // namespace echelon::inline exchange
