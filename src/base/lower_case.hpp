// SPDX-License-Identifier: Apache-2.0
// Converts ASCII letters to lower case; other bytes do not change.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace echelon::inline base {

inline std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace echelon::inline base
