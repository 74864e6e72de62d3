// SPDX-License-Identifier: Apache-2.0
// Tracks for each element of a buffer the step that wrote it last and the steps that have read it since. This gives the
// steps that a new one must wait for (read after write, write after read, write after write). O(log ranges + touched
// ranges) per call; indices in `waits` may repeat and may be -1 (never written).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "comm/collective/plan.hpp"

namespace echelon::inline comm {

class RangeUses {
 public:
  // Adds to `waits` the steps that wrote elements of `range` last, for which a read must wait.
  void before_read(ElemRange range, std::vector<std::int64_t>& waits);
  // Adds to `waits` the steps that wrote elements of `range` last and those that have read them since.
  void before_write(ElemRange range, std::vector<std::int64_t>& waits);
  void note_read(ElemRange range, std::int64_t step);
  void note_write(ElemRange range, std::int64_t step);

 private:
  struct Use {
    std::int64_t end = std::numeric_limits<std::int64_t>::max();
    std::int64_t writer = -1;  // -1: not written yet
    std::vector<std::int64_t> readers;
  };
  using Map = std::map<std::int64_t, Use>;  // by first element, without gaps
  void cut(std::int64_t at);
  Map::iterator from(ElemRange range);

  Map uses_ = {{0, {}}};
};

}  // namespace echelon::inline comm
