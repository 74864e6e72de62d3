// What the contract tests of a family of ops draw from. One file a family, verify/ops/<family>.cpp, defines
// `OpCases <family>_cases()` for each family of device/ops/list.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/op_spec.hpp"

namespace echelon::verify {

using Values = std::vector<std::vector<double>>;  // by argument, plain

// Bytes that are, repeated, NaN or a value of 3e38 in f32, and alike in bf16: what memory holds that an op must write
// before it reads it.
inline constexpr std::byte kNaN{0xFF}, kHuge{0x7F};

// The scalars and addresses of one run of an op.
struct OpTrial {
  std::string name;         // keys the random inputs
  unsigned accumulate = 0;  // as in OpArgs
  double scale = 1, count = 0;
  std::uint64_t version = 0;
  bool unaligned = false;          // tensors of the arena begin one element late
  std::byte poison = kNaN;         // fills scratch
  DType activations = DType::f32;  // what a forward twin's inputs are rounded to, on the device and for the reference
};

// One random input. All functions return as many values as the argument has, the same ones at every call.
struct InputDraw {
  const OpSpec& spec;
  const ArgInfo& arg;
  const OpTrial& trial;
  const Values& before;  // the inputs in front of it

  std::vector<double> any() const;                                          // in [-1, 1); any integers where i32
  std::vector<double> affine(double factor, double shift) const;            // factor * any() + shift
  std::vector<double> integers(std::int64_t low, std::int64_t high) const;  // in [low, high]
  std::vector<double> zeros_and_ones() const;                               // mostly ones

 private:
  std::string name() const;
};

// A backward kind that reads what its forward kind `saved`.
struct Twin {
  OpKind backward, forward;
};

struct OpCases {
  // Odd sizes, one sample, one channel, channels that are no multiple of 8 or 16, sizes just above a tile, and what is
  // particular to the family; every kind at least once. Layouts are all plain.
  std::vector<OpSpec> (*specs)(DType dtype);
  // Inputs that the op's definition allows and that measure it well; without: any().
  std::vector<double> (*input)(const InputDraw& draw) = nullptr;
  // Changes inputs at which rounding would decide between two results; without: nothing.
  void (*clear_kinks)(const OpSpec& spec, Values& inputs) = nullptr;
  // Families with a scalar `count`: its value for this micro-batch alone. Runs with the counts of larger groups follow.
  double (*own_count)(const OpSpec& spec) = nullptr;
  std::optional<Twin> twin = {};
  double half_tolerance = 1;  // factor of the tolerance in halves
};

OpCases cases_of(OpKind kind);

// The input `arg` of `spec`; `before` holds the inputs in front of it.
std::vector<double> make_input(const OpSpec& spec, const ArgInfo& arg, const OpTrial& trial, const Values& before);

inline std::size_t elems(const Shape& shape) { return static_cast<std::size_t>(shape.elems()); }

}  // namespace echelon::verify
