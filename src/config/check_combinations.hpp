// SPDX-License-Identifier: Apache-2.0
// Checks a config as a whole, before any data is read. The checks of values that depend on other values are in
// check_combinations.cpp, choices that exclude each other in combinations.hpp, keys that nothing reads in unfit.hpp.
#pragma once

#include "config/schema.hpp"

namespace echelon::inline config {

// Checks everything that needs neither the data nor the number of ranks: missing model or data, numbers that exclude
// each other, keys without effect, choices that exclude each other. Throws ConfigError for the first problem, with
// file:line:column and the nearest valid value. load_config calls it.
void check_combinations(const Config& config);

}  // namespace echelon::inline config
