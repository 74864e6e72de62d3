// SPDX-License-Identifier: Apache-2.0
// Shared memory by mmap: equal parts for all ranks, stored one behind the other. Untouched pages take no memory.
#pragma once

#include <cstddef>

#include "comm/shared_block.hpp"

namespace echelon::inline comm {

class MappedBlock final : public SharedBlock {
 public:
  // Zeroed memory of `parts` parts of `part_bytes`, a multiple of the page size. Maps `file`, whose size is set
  // already; with -1 the memory is shared by the threads of this process only. EnvironmentError if the system cannot
  // map it.
  MappedBlock(int file, std::size_t part_bytes, int parts);
  ~MappedBlock() override;
  MappedBlock(const MappedBlock&) = delete;

  std::byte* of(int part) const override { return memory_ + static_cast<std::size_t>(part) * part_bytes_; }

 private:
  std::byte* memory_ = nullptr;
  std::size_t part_bytes_, bytes_;
};

}  // namespace echelon::inline comm
