// Numbers in variables of the environment: read whole, or refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace echelon::inline base {

// The value of the variable; none where it is not set or empty. ConfigError where it is no whole number in the range:
// "SLURM_NTASKS=4x: no whole number of <meaning>, <low> to <high>".
std::optional<std::int64_t> whole_in_environment(const char* name, const std::string& meaning, std::int64_t low,
                                                 std::int64_t high);
// The value as a finite number > 0; it fails as the one above does.
std::optional<double> positive_in_environment(const char* name, const std::string& meaning);

}  // namespace echelon::inline base
