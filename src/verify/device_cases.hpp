// SPDX-License-Identifier: Apache-2.0
// The inputs of the contract tests for each family of ops. Every family of device/ops/list.hpp has one file,
// verify/ops/<family>.cpp, which defines `OpCases <family>_cases()`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/op_spec.hpp"

namespace echelon::verify {

using Values = std::vector<std::vector<double>>;  // [argument], in plain layout

// Byte patterns that fill memory which an op must write before it reads it. Repeated, they are NaN or about 3e38, in
// f32 and in bf16.
inline constexpr std::byte kNaN{0xFF}, kHuge{0x7F};

// The scalars and addresses of one run of an op.
struct OpTrial {
  std::string name;         // keys the random inputs
  unsigned accumulate = 0;  // as in OpArgs::accumulate
  double scale = 1, count = 0;
  std::uint64_t version = 0;
  bool unaligned = false;       // tensors of the arena start one element late
  std::byte poison = kNaN;      // fills the scratch memory
  DType operands = DType::f32;  // type to which inputs of the spec's type are rounded, a forward twin's too
};

// Draws one random input. Each function returns as many values as the argument has, and the same at every call.
struct InputDraw {
  const OpSpec& spec;
  const ArgInfo& arg;
  const OpTrial& trial;
  const Values& before;  // the inputs before this one

  std::vector<double> any() const;                                          // in [-1, 1); for i32 any integers
  std::vector<double> affine(double factor, double shift) const;            // factor * any() + shift
  std::vector<double> integers(std::int64_t low, std::int64_t high) const;  // in [low, high]
  std::vector<double> zeros_and_ones() const;                               // mostly ones

 private:
  std::string name() const;
};

// A backward kind that reads the memory `saved` by its forward kind.
struct Twin {
  OpKind backward, forward;
};

struct OpCases {
  // Returns odd sizes, one sample, one channel, channels that are not a multiple of 8 or 16, sizes just above a tile,
  // and special cases of the family, with every kind at least once. All layouts are plain.
  std::vector<OpSpec> (*specs)(DType dtype);
  // Draws inputs that the op's definition allows and that test it well; null: any().
  std::vector<double> (*input)(const InputDraw& draw) = nullptr;
  // Changes inputs at which rounding would decide between two results; null: no change.
  void (*clear_kinks)(const OpSpec& spec, Values& inputs) = nullptr;
  // For families with a scalar `count`: its value for this micro-batch alone. Later runs use counts of larger groups.
  double (*own_count)(const OpSpec& spec) = nullptr;
  std::optional<Twin> twin = {};
  double half_tolerance = 1;  // factor on the tolerance for halves
};

OpCases cases_of(OpKind kind);

// Draws the input `arg` of `spec`; `before` holds the inputs before it.
std::vector<double> make_input(const OpSpec& spec, const ArgInfo& arg, const OpTrial& trial, const Values& before);

inline std::size_t elems(const Shape& shape) { return static_cast<std::size_t>(shape.elems()); }

}  // namespace echelon::verify
