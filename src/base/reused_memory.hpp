// SPDX-License-Identifier: Apache-2.0
// Memory that a function uses again in each call. Fresh memory of many megabytes costs more than a pass over it,
// because the system clears every page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace echelon::inline base {

// Declare it thread_local; the thread's end frees the memory.
class ReusedMemory {
 public:
  // Returns at least this many bytes, whose content is undefined, valid until the next call.
  std::uint8_t* at_least(std::size_t bytes) {
    if (bytes > bytes_) {
      memory_.reset();
      memory_ = std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
      bytes_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::uint8_t[]> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace echelon::inline base
