// For each element of a buffer: the step that wrote it last and the steps that have read it since. From this follow the
// steps that a new one must wait for (read after write, write after read, write after write). O(log ranges + touched
// ranges) a call; indices in `waits` may repeat and may be -1 (never written).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "comm/collective/plan.hpp"

namespace echelon::inline comm {

class RangeUses {
 public:
  // Adds the steps that a read of `range` waits for: those that wrote it last.
  void before_read(ElemRange range, std::vector<std::int64_t>& waits);
  // Likewise for a write: those that wrote it last, and those that have read it since.
  void before_write(ElemRange range, std::vector<std::int64_t>& waits);
  void note_read(ElemRange range, std::int64_t step);
  void note_write(ElemRange range, std::int64_t step);

 private:
  struct Use {
    std::int64_t end = std::numeric_limits<std::int64_t>::max();
    std::int64_t writer = -1;  // -1: none yet
    std::vector<std::int64_t> readers;
  };
  using Map = std::map<std::int64_t, Use>;  // by first element; without gaps
  void cut(std::int64_t at);
  Map::iterator from(ElemRange range);

  Map uses_ = {{0, {}}};
};

}  // namespace echelon::inline comm
