// SPDX-License-Identifier: Apache-2.0
// Slowed messages of real ranks ([network]) keep a transport's contract, and processes share cards.
#include <catch2/catch.hpp>
#include <thread>

#include "base/clock.hpp"
#include "comm/group.hpp"
#include "comm/network_card.hpp"
#include "comm/shaped.hpp"
#include "tests/mpi/ring.hpp"
#include "tests/support/transport_contract.hpp"

using namespace echelon;

TEST_CASE("MPI slowed down keeps the transport's contract", "[shaped]") {
  for (const int ranks_per_host : {1, 2}) {
    const auto transport =
        make_shaped(test::ring_transport(), {.bytes_per_s = 1e8, .delay_s = 20e-6, .ranks_per_host = ranks_per_host});
    CHECK(transport->shape()->ranks_per_host == ranks_per_host);
    CHECK(transport->hosts()[static_cast<std::size_t>(transport->rank())] == transport->rank() / ranks_per_host);
    CHECK_NOTHROW(test::check_transport(*transport));
    Engine engine(transport->split(0, transport->rank()));
    CHECK_NOTHROW(test::check_group(engine));
  }
}

TEST_CASE("processes of one host share its card", "[shaped][four]") {
  const NetworkShape shape{.bytes_per_s = 10e6, .ranks_per_host = 2};
  const auto transport = make_shaped(test::ring_transport(), shape);
  const int rank = transport->rank();
  const bool sends = rank < 2, receives = rank == 2 || rank == 3;
  std::vector<char> data(300'000, static_cast<char>(rank));
  Engine engine(transport->split(0, rank));
  Group group(engine, 0);
  group.barrier();
  const double start_s = now_s();
  Request request;
  if (sends) request = transport->isend(rank + 2, 3, data.data(), data.size());
  if (receives) request = transport->irecv(rank - 2, 3, data.data(), data.size());
  while (request.valid() && !transport->test(request)) std::this_thread::yield();
  const double seconds = now_s() - start_s;
  // Both messages pass through one card, so the last receiver waits for both.
  const double last_s = group.max(receives ? seconds : 0);
  CHECK(last_s > 1.9 * card_s(shape, data.size()));
  if (receives) CHECK(data.back() == rank - 2);
}
