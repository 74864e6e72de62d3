// SPDX-License-Identifier: Apache-2.0
// Memory of one host that several ranks share: one part for each rank, readable and writable by all (Transport::share).
#pragma once

#include <cstddef>

namespace echelon::inline comm {

class SharedBlock {
 public:
  virtual ~SharedBlock() = default;
  // The part of `rank` in the address space of this process: aligned to 64 bytes, initially zero. Its users synchronise
  // by atomics that they place in it (shared_queue.hpp).
  virtual std::byte* of(int rank) const = 0;
  // To be called by a thread that has waited a while: throws EnvironmentError if the world has ended, so that no peer
  // can come.
  virtual void check() const {}
};

}  // namespace echelon::inline comm
