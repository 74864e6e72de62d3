// SPDX-License-Identifier: Apache-2.0
// Memory for the tensors of one program: tensors whose lifetimes do not overlap share addresses.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace echelon::inline model {

inline constexpr std::size_t kTensorAlignment = 64;

struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;  // op that writes it first
  int last = 0;   // op that uses it last, >= first
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // multiples of kTensorAlignment, by tensor
  std::size_t bytes = 0;             // size of the one allocation
};

// Returns offsets for all tensors, by index: largest first, each in the smallest gap that fits between the tensors that
// are already placed and are live at the same time. O(n^2) for n tensors.
MemoryPlan plan_memory(std::span<const Lifetime> tensors);

// Throws an internal error if two tensors that are live at the same time overlap, or if one ends behind `plan.bytes`.
void check_memory_plan(std::span<const Lifetime> tensors, const MemoryPlan& plan);

}  // namespace echelon::inline model
