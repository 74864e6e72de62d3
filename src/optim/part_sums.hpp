// SPDX-License-Identifier: Apache-2.0
// Sums of a few numbers over the ranks that hold parts of one model, which an optimiser needs for norms. They are
// implemented in parallel/, so that optim/ includes no communication.
#pragma once

#include <span>

namespace echelon::inline optim {

class PartSums {
 public:
  virtual ~PartSums() = default;
  // Whether this rank counts the parameters that all ranks of its stage hold whole; exactly one rank of a stage does.
  virtual bool counts_shared() const = 0;
  // Set values[i] to its sum over the ranks of the model, or over the ranks that hold slices of the same tensors.
  // Collective over these ranks, blocking; all get the same bits. They throw the engine's errors (Ticket::wait).
  virtual void over_model(std::span<double> values) = 0;
  virtual void over_slices(std::span<double> values) = 0;
};

}  // namespace echelon::inline optim
