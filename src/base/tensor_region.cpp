// SPDX-License-Identifier: Apache-2.0
#include "base/tensor_region.hpp"

#include <cstring>

namespace echelon::inline base {

void copy_into_whole(const TensorRegion& region, std::size_t elem_bytes, const void* part, void* whole) {
  for_each_run(region, elem_bytes, [&](std::size_t in_part, std::size_t in_whole, std::size_t bytes) {
    std::memcpy(static_cast<std::byte*>(whole) + in_whole, static_cast<const std::byte*>(part) + in_part, bytes);
  });
}

void copy_from_whole(const TensorRegion& region, std::size_t elem_bytes, const void* whole, void* part) {
  for_each_run(region, elem_bytes, [&](std::size_t in_part, std::size_t in_whole, std::size_t bytes) {
    std::memcpy(static_cast<std::byte*>(part) + in_part, static_cast<const std::byte*>(whole) + in_whole, bytes);
  });
}

}  // namespace echelon::inline base
