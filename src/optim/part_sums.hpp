// What an optimiser must ask of the other ranks that hold the same model, each a part of it: sums of a few numbers.
#pragma once

#include <span>

namespace echelon::inline optim {

class PartSums {
 public:
  virtual ~PartSums() = default;
  // Whether this rank answers for what all ranks of its stage hold whole.
  virtual bool counts_shared() const = 0;
  // Over the ranks of the model, or over those that hold slices of the same tensors. All of them call it alike and end
  // with the same bits.
  virtual void over_model(std::span<double> values) = 0;
  virtual void over_slices(std::span<double> values) = 0;
};

}  // namespace echelon::inline optim
