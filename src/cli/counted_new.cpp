// SPDX-License-Identifier: Apache-2.0
// The program's operator new, which counts (base/allocations.hpp). All other forms of operator new call one of these.
// The Makefile leaves this file out of tests and of sanitised builds.
#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include "base/allocations.hpp"

namespace {

void* counted(std::size_t bytes, void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  ++echelon::allocation_count.calls;
  echelon::allocation_count.bytes += bytes;
  echelon::held_bytes += static_cast<std::int64_t>(malloc_usable_size(memory));
  return memory;
}

void give_back(void* memory) {
  echelon::held_bytes -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, std::malloc(bytes == 0 ? 1 : bytes)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto to = static_cast<std::size_t>(alignment);
  return counted(bytes, std::aligned_alloc(to, (bytes + to - 1) / to * to));
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
