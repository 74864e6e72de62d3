// SPDX-License-Identifier: Apache-2.0
// Measures how fast one core of an asynchronous parameter server applies updates, compared with copying memory.
#pragma once

#include <string>

#include "config/schema.hpp"
#include "device/arenas.hpp"

namespace echelon::cli {

// Returns a table with one row for each way of applying updates: the median time of one update of the whole model and
// its answer, the bytes read and written per second, and these over memcpy's rate (last column; 1: memory is the
// limit). `rounds` >= 1.
std::string served_table(const OptimiserConfig& optimiser, const ParameterSet& parameters, DType dtype, int rounds);

}  // namespace echelon::cli
