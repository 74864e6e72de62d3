// SPDX-License-Identifier: Apache-2.0
// Replaces names by numbers from 0, in the order of their first occurrence: 7 2 7 5 becomes 0 1 0 2. O(names), because
// there may be as many of them as ranks.
#pragma once

#include <unordered_map>
#include <vector>

namespace echelon::inline base {

inline std::vector<int> numbered(const std::vector<int>& names) {
  std::unordered_map<int, int> known;
  std::vector<int> numbers;
  numbers.reserve(names.size());
  for (const int name : names) numbers.push_back(known.emplace(name, static_cast<int>(known.size())).first->second);
  return numbers;
}

}  // namespace echelon::inline base
