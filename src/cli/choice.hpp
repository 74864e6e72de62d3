// SPDX-License-Identifier: Apache-2.0
// Command-line options that choose one of two values.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/nearest.hpp"

namespace echelon::cli {

using Choice = std::array<const char*, 2>;
inline constexpr Choice kWeightForms = {"trained", "int8"};

// Returns whether `given` is the second of `known`. Throws ConfigError, with the nearest name, if it is neither.
inline bool is_second(const char* option, const std::string& given, const Choice& known) {
  if (given == known[1]) return true;
  if (given == known[0]) return false;
  const std::vector<std::string> names(known.begin(), known.end());
  throw ConfigError(unknown_name(option, given, names));
}

}  // namespace echelon::cli
