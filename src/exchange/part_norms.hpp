// SPDX-License-Identifier: Apache-2.0
// The sums that an optimiser needs over the other parts of its model. Values are added in the order of ranks, so that
// every part of every replica gets the same bits. Both sums are collective over their ranks, block the compute thread,
// and send a message of 8 bytes per value to each of the other ranks. They throw EnvironmentError if the transport
// fails.
#pragma once

#include "comm/group.hpp"
#include "optim/part_sums.hpp"

namespace echelon::inline exchange {

class PartNorms final : public PartSums {
 public:
  // `model` is the engine of the ranks that hold one model, `slices` that of the ranks among them that share a stage.
  // One rank of a stage has `counts_shared`: it counts the shared parameters. No one else may use `channel` on both
  // engines.
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
