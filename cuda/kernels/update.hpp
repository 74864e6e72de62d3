// SPDX-License-Identifier: Apache-2.0
// Launches of the optimiser rules: one fused pass per rule over a range of the arena.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "device/row_bits.hpp"
#include "device/update_rules/rule.hpp"

namespace echelon::cuda {

// w, g and states begin at the range. Rule is one of ECHELON_UPDATE_RULES, T float or double.
template <class Rule, class T>
void update_range(T* w, const T* g, std::span<void* const> states, std::size_t n, const RuleScalars& scalars,
                  cudaStream_t stream);

// The same for the rows of a table whose bit is set.
template <class Rule, class T>
void update_rows(T* w, const T* g, std::span<void* const> states, const RowMarks& marks, const RuleScalars& scalars,
                 cudaStream_t stream);

}  // namespace echelon::cuda
