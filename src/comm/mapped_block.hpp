// Shared memory by mmap: equal parts of all ranks, one behind the other. Pages that nobody touches take no memory.
#pragma once

#include <cstddef>

#include "comm/shared_block.hpp"

namespace echelon::inline comm {

class MappedBlock final : public SharedBlock {
 public:
  // Zeros; `part_bytes` a multiple of the page, of each of `parts`. Of `file`, whose size is set; -1: of the threads of
  // this process alone. EnvironmentError where the system maps none.
  MappedBlock(int file, std::size_t part_bytes, int parts);
  ~MappedBlock() override;
  MappedBlock(const MappedBlock&) = delete;

  std::byte* of(int part) const override { return memory_ + static_cast<std::size_t>(part) * part_bytes_; }

 private:
  std::byte* memory_ = nullptr;
  std::size_t part_bytes_, bytes_;
};

}  // namespace echelon::inline comm
