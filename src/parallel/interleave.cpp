// SPDX-License-Identifier: Apache-2.0
#include "parallel/interleave.hpp"

#include <cstring>

namespace echelon::inline parallel {

void interleave(const GatherForm& form, const std::vector<const std::byte*>& blocks, std::size_t elem, void* whole) {
  auto* to = static_cast<std::byte*>(whole);
  for (std::int64_t outer = 0; outer < form.outer; ++outer)
    for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
      const std::size_t bytes = static_cast<std::size_t>(form.units[rank] * form.inner) * elem;
      std::memcpy(to, blocks[rank] + static_cast<std::size_t>(outer) * bytes, bytes);
      to += bytes;
    }
}

}  // namespace echelon::inline parallel
