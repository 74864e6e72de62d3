// SPDX-License-Identifier: Apache-2.0
#include "tests/support/allocations.hpp"

#include <link.h>
#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/allocations.hpp"

namespace {

thread_local std::uint64_t count = 0, count_of_onednn = 0;

// An address range of oneDNN's code.
struct Range {
  std::uintptr_t begin = 0, end = 0;
  bool holds(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= begin && at < end;
  }
};

int find_onednn(dl_phdr_info* info, std::size_t, void* found) {
  if (!info->dlpi_name || !std::strstr(info->dlpi_name, "libdnnl")) return 0;
  auto* range = static_cast<Range*>(found);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
    range->begin = info->dlpi_addr + part.p_vaddr;
    range->end = range->begin + part.p_memsz;
  }
  return 1;
}

const Range& onednn() {
  static const Range range = [] {
    Range found;
    dl_iterate_phdr(find_onednn, &found);
    return found;
  }();
  return range;
}

// `caller` is the address that operator new returns to.
void* counted(std::size_t bytes, std::size_t alignment, const void* caller) {
  ++count;
  if (onednn().holds(caller)) ++count_of_onednn;
  if (bytes == 0) bytes = 1;
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(bytes)
                     : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  echelon::held_bytes += static_cast<std::int64_t>(malloc_usable_size(memory));
  return memory;
}

void give_back(void* memory) {
  echelon::held_bytes -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

namespace echelon::test {
std::uint64_t allocations() { return count; }
std::uint64_t allocations_of_onednn() { return count_of_onednn; }
}  // namespace echelon::test

// Replaces the program's operator new; every other form calls one of these. The form that does not throw is replaced
// too, but not under the address sanitizer, which would then find its memory freed by another library's delete.
void* operator new(std::size_t bytes) { return counted(bytes, 0, __builtin_return_address(0)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return counted(bytes, 0, __builtin_return_address(0));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
