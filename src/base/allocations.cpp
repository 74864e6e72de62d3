// SPDX-License-Identifier: Apache-2.0
#include "base/allocations.hpp"

#include <new>

namespace echelon::inline base {

bool counts_allocations() {
  const std::uint64_t before = allocation_count.calls;
  ::operator delete(::operator new(1));  // a direct call cannot be optimised away, unlike a new expression
  return allocation_count.calls > before;
}

}  // namespace echelon::inline base
