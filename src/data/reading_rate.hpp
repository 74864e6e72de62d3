// SPDX-License-Identifier: Apache-2.0
// How fast one loader reads a data set.
#pragma once

#include "data/dataset.hpp"

namespace echelon::inline data {

// Returns samples per second of wall time, in the shuffled order of an epoch, in batches of 64: over one epoch, or over
// as much of it as a second allows. The files may lie in the system's cache. Throws what reading throws.
double reading_rate(const Dataset& set);

}  // namespace echelon::inline data
