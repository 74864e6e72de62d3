// SPDX-License-Identifier: Apache-2.0
// The check that all replicas of a run ended with the same weights.
#pragma once

#include <catch2/catch.hpp>

#include "tests/support/replicas.hpp"

namespace echelon::test {

inline void check_one_model(const ReplicaResult& result) {
  for (const std::uint64_t checksum : result.checksums) CHECK(checksum == result.checksums.front());
}

}  // namespace echelon::test
