// SPDX-License-Identifier: Apache-2.0
// Host memory of one device: aligned, zero-filled, counted, and refused above a limit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "device/device.hpp"

namespace echelon::inline device {

class HostMemory {
 public:
  static constexpr std::size_t kAlignment = 64;  // a cache line, and an AVX-512 register

  // limit_bytes 0: only the machine's memory limits it. `only_counts`: blocks take no memory until they are touched.
  explicit HostMemory(std::int64_t limit_bytes, bool only_counts = false)
      : limit_bytes_(limit_bytes), only_counts_(only_counts) {}

  // Throws MemoryError with the tag, the requested bytes, the allocated bytes and the limit. The block may outlive this
  // object. One thread allocates; blocks may be freed on any thread.
  Memory allocate(std::size_t bytes, std::string_view tag);

  std::size_t allocated_bytes() const { return counts_->now; }
  std::size_t peak_bytes() const { return counts_->peak; }

 private:
  struct Counts {
    std::atomic<std::size_t> now = 0;
    std::atomic<std::size_t> peak = 0;
  };
  std::int64_t limit_bytes_;
  bool only_counts_;
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

}  // namespace echelon::inline device
