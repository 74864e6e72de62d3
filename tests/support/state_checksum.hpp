// A checksum of visited state, to compare what was saved with what was loaded.
#pragma once

#include <cstdint>

#include "checkpoint/checkpoint.hpp"

namespace echelon::test {

// checksum64 over the names and bytes of all visited state, in the order of the visit; takes one pass.
std::uint64_t state_checksum(const VisitAll& visit);

}  // namespace echelon::test
