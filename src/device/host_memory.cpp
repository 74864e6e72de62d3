#include "device/host_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "base/text.hpp"

namespace echelon {

Memory HostMemory::allocate(std::size_t bytes, std::string_view tag) {
  const std::size_t held = counts_->now;
  const auto limit = static_cast<std::size_t>(limit_bytes_);
  if (limit_bytes_ > 0 && (bytes > limit || held > limit - bytes))
    throw MemoryError(fmt::format("memory limit reached: {} for '{}' on top of {} held would pass the limit of {}",
                                  bytes_text(static_cast<double>(bytes)), tag, bytes_text(static_cast<double>(held)),
                                  bytes_text(static_cast<double>(limit))));
  // Never an empty block, so that its address is not null.
  const std::size_t blocks = bytes / kAlignment + (bytes % kAlignment != 0 || bytes == 0 ? 1 : 0);
  void* data = blocks > SIZE_MAX / kAlignment ? nullptr : std::aligned_alloc(kAlignment, blocks * kAlignment);
  if (!data)
    throw MemoryError(fmt::format("out of memory: {} for '{}' on top of {} held cannot be had from this machine",
                                  bytes_text(static_cast<double>(bytes)), tag, bytes_text(static_cast<double>(held))));
  std::memset(data, 0, blocks * kAlignment);
  const std::size_t now = counts_->now += bytes;
  for (std::size_t peak = counts_->peak; now > peak && !counts_->peak.compare_exchange_weak(peak, now);) {
  }
  return Memory(data, bytes, [counts = counts_, bytes](void* block) {
    std::free(block);
    counts->now -= bytes;
  });
}

}  // namespace echelon
