// Memory of one host that several ranks see: each rank's part of it, which all read and write.
#pragma once

#include <cstddef>

namespace echelon::inline comm {

class SharedBlock {
 public:
  virtual ~SharedBlock() = default;
  // Where this rank sees the part of `rank`: aligned to 64 bytes, zero at first. What is there is ordered by atomics
  // that lie in it.
  virtual std::byte* of(int rank) const = 0;
  // Called by who has waited a while: throws where no rank can arrive any more.
  virtual void check() const {}
};

}  // namespace echelon::inline comm
