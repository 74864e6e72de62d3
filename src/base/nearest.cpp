// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace echelon::inline base {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

namespace {
std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}
}  // namespace

std::string nearest_name(std::string_view written, std::span<const std::string> known) {
  std::string best;
  int best_distance = 1 << 20;
  for (const std::string& name : known) {
    const int distance = edit_distance(lower(written), lower(name));
    const int limit = std::max(2, static_cast<int>(std::max(written.size(), name.size())) / 3);
    if (distance <= limit && distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string unknown_name(std::string_view what, std::string_view written, std::span<const std::string> known) {
  const std::string near = nearest_name(written, known);
  return fmt::format("unknown {} '{}'{}; known: {}", what, written,
                     near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near), fmt::join(known, ", "));
}

}  // namespace echelon::inline base
