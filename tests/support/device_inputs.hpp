// Random arguments of one run of an op, of the sizes and kinds that its spec allows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/op_spec.hpp"

namespace echelon::test {

// The scalars and addresses of one run of an op.
struct Trial {
  std::string name;         // keys the random inputs
  unsigned accumulate = 0;  // as in OpArgs
  double scale = 1, count = 0;
  std::uint64_t version = 0;
  bool unaligned = false;          // tensors of the arena begin one element late
  DType activations = DType::f32;  // what a forward twin's inputs are rounded to, on the device and for the reference

  double group_count(const NormDims& d) const { return count > 0 ? count : static_cast<double>(d.N * d.H * d.W); }
};

using Values = std::vector<std::vector<double>>;  // by argument, plain

inline std::size_t elems(const Shape& shape) { return static_cast<std::size_t>(shape.elems()); }

// Input `arg` of `spec`; `before` holds the inputs in front of it.
std::vector<double> make_input(const OpSpec& spec, const ArgInfo& arg, const Trial& trial, const Values& before);

// Takes the gradient from units of a norm's ReLU that rounding could turn on or off.
void clear_kinks(const OpSpec& spec, Values& inputs);

}  // namespace echelon::test
