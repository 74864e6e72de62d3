// How fast one core of an asynchronous parameter server takes in updates, beside copies of as much memory.
#pragma once

#include <string>

#include "config/schema.hpp"
#include "device/arenas.hpp"

namespace echelon::cli {

// A table: for each way of applying updates, the median time of one update of the whole model and its answer, and the
// bytes read and written a second over those of memcpy (the last column; 1: memory is the limit). `rounds` >= 1.
std::string served_table(const OptimiserConfig& optimiser, const ParameterSet& parameters, DType dtype, int rounds);

}  // namespace echelon::cli
