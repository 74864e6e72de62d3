// SPDX-License-Identifier: Apache-2.0
// Reads numbers from environment variables, and refuses values that are not entirely a number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace echelon::inline base {

// Returns the value of the variable; none if it is not set or empty. Throws ConfigError if it is not a whole number in
// the range: "SLURM_NTASKS=4x: no whole number of <meaning>, <low> to <high>".
std::optional<std::int64_t> whole_in_environment(const char* name, const std::string& meaning, std::int64_t low,
                                                 std::int64_t high);
// Returns the value as a finite number > 0. Throws ConfigError in the same way.
std::optional<double> positive_in_environment(const char* name, const std::string& meaning);

}  // namespace echelon::inline base
