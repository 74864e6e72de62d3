// SPDX-License-Identifier: Apache-2.0
// Memory that ends where a page ends, before a page that cannot be accessed: reading or writing beyond it crashes in
// any build. Writes before it are found by comparing bytes.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>

namespace echelon::test {

class Guarded {
 public:
  explicit Guarded(std::size_t most) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    usable_ = (most + kBefore + page - 1) / page * page;
    void* all = ::mmap(nullptr, usable_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::byte*>(all);
    bytes_ = usable_ + page;
    ::mprotect(begin_ + usable_, page, PROT_NONE);
  }
  ~Guarded() { ::munmap(begin_, bytes_); }
  Guarded(const Guarded&) = delete;

  // Returns `bytes` of memory that begin at a multiple of `alignment` (a power of two), valid until the next call. What
  // lies behind them up to the next multiple is readable.
  std::byte* place(std::size_t bytes, std::size_t alignment = 1) {
    place_ = begin_ + (usable_ - bytes) / alignment * alignment;
    std::memset(place_ - kBefore, kMark, kBefore);
    return place_;
  }
  std::byte* place(const std::string& content, std::size_t alignment = 1) {
    std::byte* to = place(content.size(), alignment);
    std::memcpy(to, content.data(), content.size());
    return to;
  }
  // Tells whether the bytes before the memory are untouched.
  bool intact() const {
    return std::all_of(place_ - kBefore, place_, [](std::byte byte) { return byte == std::byte{kMark}; });
  }

 private:
  static constexpr std::size_t kBefore = 64;
  static constexpr unsigned char kMark = 0xa5;
  std::byte* begin_ = nullptr;
  std::byte* place_ = nullptr;
  std::size_t usable_ = 0, bytes_ = 0;
};

}  // namespace echelon::test
