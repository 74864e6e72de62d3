// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/mpi/ring.hpp"
#include "tests/support/transport_contract.hpp"

using namespace echelon;

TEST_CASE("every all-reduce gives exact sums under MPI", "[comm]") {
  Engine engine(test::ring_transport());
  for (const std::int64_t elems : {0, 1, 2, 3, 5, 1000, 123457}) CHECK_NOTHROW(test::check_allreduce(engine, elems));
}

TEST_CASE("a group sums, gathers and broadcasts under MPI", "[comm]") {
  Engine engine(test::ring_transport());
  CHECK_NOTHROW(test::check_group(engine));
}

TEST_CASE("many channels in different orders give the right sums under MPI", "[comm]") {
  Engine engine(test::ring_transport());
  CHECK_NOTHROW(test::check_many_channels(engine, 60));
}

TEST_CASE("parts of an engine are groups of their own under MPI", "[comm]") {
  Engine engine(test::ring_transport());
  CHECK_NOTHROW(test::check_engine_split(engine));
}
