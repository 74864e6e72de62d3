// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/range_uses.hpp"

#include <iterator>

namespace echelon::inline comm {

// Splits uses so that one begins at `at`.
void RangeUses::cut(std::int64_t at) {
  const auto use = std::prev(uses_.upper_bound(at));
  if (use->first == at) return;
  uses_.emplace(at, use->second);
  use->second.end = at;
}

RangeUses::Map::iterator RangeUses::from(ElemRange range) {
  cut(range.begin);
  cut(range.end);
  return uses_.find(range.begin);
}

void RangeUses::before_read(ElemRange range, std::vector<std::int64_t>& waits) {
  for (auto use = from(range); use->first < range.end; ++use) waits.push_back(use->second.writer);
}

void RangeUses::before_write(ElemRange range, std::vector<std::int64_t>& waits) {
  for (auto use = from(range); use->first < range.end; ++use) {
    waits.push_back(use->second.writer);
    waits.insert(waits.end(), use->second.readers.begin(), use->second.readers.end());
  }
}

void RangeUses::note_read(ElemRange range, std::int64_t step) {
  for (auto use = from(range); use->first < range.end; ++use) use->second.readers.push_back(step);
}

void RangeUses::note_write(ElemRange range, std::int64_t step) {
  const auto first = from(range);
  if (first->second.end == range.end) {
    first->second.writer = step;
    first->second.readers.clear();
    return;
  }
  const auto last = uses_.find(range.end);
  uses_.emplace_hint(uses_.erase(first, last), range.begin, Use{.end = range.end, .writer = step, .readers = {}});
}

}  // namespace echelon::inline comm
