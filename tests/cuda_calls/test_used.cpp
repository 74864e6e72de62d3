// SPDX-License-Identifier: Apache-2.0
// The stand-in has no call that cuda/ does not make, and the ring makes all of them.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/cuda_calls/scenarios.hpp"

using namespace echelon;
using namespace echelon::test;

TEST_CASE("every call of the stand-in is made", "[cuda_calls]") {
  ledger().begin({});
  for (const Scenario& scenario : scenarios()) scenario.run();
  CHECK(complaints() == "");
  // Calls that report errors are made only after one.
  for (const char* call : {"cudaHostAlloc", "cudnnCreate", "cublasCreate_v2", "ncclAllReduce"}) {
    ledger().begin({});
    ledger().fail({.call = call});
    CHECK_THROWS_AS(sum_alone(), EnvironmentError);
  }
  ledger().begin({.card_bytes = (std::size_t{32} << 20) + 8192});
  CHECK_THROWS_AS(encode_all(), MemoryError);
  CHECK(ledger().never_called() == std::vector<std::string>{});
}
