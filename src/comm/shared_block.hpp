// Memory of one host that several ranks share: one part for each rank, readable and writable by all (Transport::share).
#pragma once

#include <cstddef>

namespace echelon::inline comm {

class SharedBlock {
 public:
  virtual ~SharedBlock() = default;
  // The part of `rank` in the address space of this one: aligned to 64 bytes, zero at first. Its users synchronise by
  // atomics that they place in it (shared_queue.hpp).
  virtual std::byte* of(int rank) const = 0;
  // For a thread that has waited a while: throws EnvironmentError where the world has ended, so that no peer can come.
  virtual void check() const {}
};

}  // namespace echelon::inline comm
