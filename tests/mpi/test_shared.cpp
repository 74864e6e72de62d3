// SPDX-License-Identifier: Apache-2.0
// Memory that ranks share through MPI's windows.
#include <catch2/catch.hpp>

#include "comm/engine.hpp"
#include "tests/mpi/ring.hpp"
#include "tests/support/shared_check.hpp"

namespace echelon {
namespace {

TEST_CASE("what travels through MPI's shared windows is what was sent", "[shared]") {
  Engine engine(test::ring_transport());
  if (engine.transport().host_names().size() > 1) {
    CHECK(engine.share(64) == nullptr);
    return;
  }
  CHECK_NOTHROW(test::check_shared_links(engine, *open_device("reference", {})));
  CHECK_NOTHROW(test::check_shared_collectives(engine));
}

}  // namespace
}  // namespace echelon
