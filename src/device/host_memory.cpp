// SPDX-License-Identifier: Apache-2.0
#include "device/host_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "base/text.hpp"

namespace echelon::inline device {
namespace {

constexpr std::size_t kHugePage = std::size_t{1} << 21;

std::size_t rounded_up(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Allocates large blocks in huge pages, if the system has them: the processor then finds far more of a block's
// addresses without walking page tables.
void* aligned_block(std::size_t bytes) {
  const bool large = bytes >= 2 * kHugePage;
  const std::size_t alignment = large ? kHugePage : HostMemory::kAlignment;
  if (bytes > SIZE_MAX - alignment) return nullptr;
  void* data = std::aligned_alloc(alignment, rounded_up(bytes, alignment));
  // Only a hint: without huge pages the block is the same, only slower. The last, incomplete page is not included.
  if (data && large) (void)madvise(data, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return data;
}

// The system fills this memory with zeros, page by page, when it is touched.
void* untouched_block(std::size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

}  // namespace

Memory HostMemory::allocate(std::size_t bytes, std::string_view tag) {
  const std::size_t held = counts_->now;
  const auto limit = static_cast<std::size_t>(limit_bytes_);
  if (limit_bytes_ > 0 && (bytes > limit || held > limit - bytes))
    throw MemoryError(
        fmt::format("memory limit reached: {} for '{}' and {} already in use would exceed the limit of {}",
                    bytes_text(static_cast<double>(bytes)), tag, bytes_text(static_cast<double>(held)),
                    bytes_text(static_cast<double>(limit))));
  // Blocks are never empty, so that their addresses are not null.
  const std::size_t taken = std::max<std::size_t>(bytes, 1);
  void* data = only_counts_ ? untouched_block(taken) : aligned_block(taken);
  if (!data)
    throw MemoryError(
        fmt::format("out of memory: {} for '{}' and {} already in use are more than this machine can provide",
                    bytes_text(static_cast<double>(bytes)), tag, bytes_text(static_cast<double>(held))));
  if (!only_counts_) std::memset(data, 0, taken);
  const std::size_t now = counts_->now += bytes;
  for (std::size_t peak = counts_->peak; now > peak && !counts_->peak.compare_exchange_weak(peak, now);) {
  }
  return Memory(data, bytes, [counts = counts_, bytes, taken, mapped = only_counts_](void* block) {
    if (mapped)
      munmap(block, taken);
    else
      std::free(block);
    counts->now -= bytes;
  });
}

}  // namespace echelon::inline device
