// SPDX-License-Identifier: Apache-2.0
#include "comm/mapped_block.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/error.hpp"

namespace echelon::inline comm {

MappedBlock::MappedBlock(int file, std::size_t part_bytes, int parts)
    : part_bytes_(part_bytes), bytes_(part_bytes * static_cast<std::size_t>(parts)) {
  const int flags = file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
  void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags, file, 0);
  if (memory == MAP_FAILED)
    throw EnvironmentError(fmt::format("{} bytes of memory that ranks of this host share cannot be allocated: {}",
                                       bytes_, std::strerror(errno)));
  memory_ = static_cast<std::byte*>(memory);
}

MappedBlock::~MappedBlock() { munmap(memory_, bytes_); }

}  // namespace echelon::inline comm
