// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "comm/local/local.hpp"
#include "comm/part_transport.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/transport_contract.hpp"

using namespace echelon;

TEST_CASE("the local transport keeps the transport's contract", "[comm][local]") {
  for (const int ranks : {1, 2, 3, 4, 7, 17})
    CHECK_NOTHROW(
        test::run_ranks(ranks, [](std::unique_ptr<Transport> transport) { test::check_transport(*transport); }));
}

TEST_CASE("a local world has the given hosts, in the order of their first ranks", "[comm][local]") {
  const auto world = make_local_world(5, {7, 7, 2, 2, 7});
  CHECK(world[3]->hosts() == std::vector<int>{0, 0, 1, 1, 0});
  CHECK(world[3]->host_names().size() == 2);
}

TEST_CASE("one rank's failure ends the waits of all others and is the error that is told", "[comm][local]") {
  const auto body = [](std::unique_ptr<Transport> transport) {
    if (transport->rank() == 1) throw DataError("shard 12 is empty");
    char in = 0;
    Request request = transport->irecv(1, 0, &in, 1);
    while (!transport->test(request)) {
    }
  };
  CHECK_THROWS_WITH(test::run_ranks(3, body), "rank 1: shard 12 is empty");
}

TEST_CASE("abort ends every rank of a local world", "[comm][local]") {
  const auto body = [](std::unique_ptr<Transport> transport) {
    const std::unique_ptr<Transport> part = transport->split(0, 0);
    if (part->rank() == 2) part->abort(5);
    char in = 0;
    Request request = transport->irecv(kAnySource, 0, &in, 1);
    while (!transport->test(request)) {
    }
  };
  CHECK_THROWS_WITH(test::run_ranks(3, body), Catch::Contains("rank 2 ended the world with exit code 5"));
}

TEST_CASE("library all-reduces in different orders are refused, not summed", "[comm][local]") {
  const auto body = [](std::unique_ptr<Transport> transport) {
    std::vector<float> data(static_cast<std::size_t>(10 + transport->rank()));
    Request request = transport->iallreduce(data.data(), data.size(), DType::f32);
    while (!transport->test(request)) {
    }
  };
  CHECK_THROWS_WITH(test::run_ranks(2, body), Catch::Contains("different orders"));
}

TEST_CASE("a part of the ranks keeps the transport's contract, while the others do nothing", "[comm][local]") {
  for (const int ranks : {1, 2, 4, 6})
    CHECK_NOTHROW(test::run_ranks(ranks + 2, [&](std::unique_ptr<Transport> transport) {
      std::vector<int> members;  // all ranks but two
      for (int rank = 0; rank < ranks + 2; ++rank)
        if (rank != ranks / 2 && rank != ranks) members.push_back(rank);
      const std::shared_ptr<Transport> whole = std::move(transport);
      if (!std::count(members.begin(), members.end(), whole->rank())) return;
      const auto part = make_part_transport(whole, members, 16);
      ECHELON_CHECK_EQ(part->size(), ranks);
      test::check_transport(*part);
      for (int i = 0; i < 3; ++i) {  // parts of parts, and several of one world
        const auto inner = part->split(part->rank() % 2, part->rank());
        test::check_transport(*inner);
        test::check_transport(*inner->split(0, -inner->rank()));
      }
    }));
}

TEST_CASE("parts of one transport do not hear each other's messages", "[comm][local]") {
  CHECK_NOTHROW(test::run_ranks(3, [](std::unique_ptr<Transport> transport) {
    const std::shared_ptr<Transport> whole = std::move(transport);
    const int me = whole->rank();
    if (me == 1) return;
    const auto all = make_part_transport(whole, {0, 1, 2}), few = make_part_transport(whole, {0, 2}, 1);
    int heard[2] = {}, told[2] = {10 + me, 20 + me};
    std::vector<std::pair<Transport*, Request>> open = {
        {few.get(), few->irecv(kAnySource, 5, &heard[0], sizeof(int))},
        {all.get(), all->irecv(2 - me, 5, &heard[1], sizeof(int))},
        {all.get(), all->isend(2 - me, 5, &told[1], sizeof(int))},
        {few.get(), few->isend(1 - few->rank(), 5, &told[0], sizeof(int))}};
    for (const double until_s = now_s() + 30; !open.empty();) {
      ECHELON_CHECK_LT(now_s(), until_s);
      std::erase_if(open, [](auto& under_way) { return under_way.first->test(under_way.second).has_value(); });
    }
    ECHELON_CHECK_EQ(heard[0], 10 + 2 - me);
    ECHELON_CHECK_EQ(heard[1], 20 + 2 - me);
    ECHELON_CHECK_EQ(few->counters().bytes_sent, sizeof(int));
    ECHELON_CHECK_EQ(few->counters().bytes_received, sizeof(int));
  }));
}

TEST_CASE("a part has a limited number of tags, and no library sum", "[comm][local]") {
  const std::shared_ptr<Transport> whole = std::move(make_local_world(1)[0]);
  const auto part = make_part_transport(whole, {0});
  CHECK_FALSE(part->has_library_allreduce());
  CHECK(part->share(8) == nullptr);
  char byte = 0;
  CHECK_THROWS_WITH(part->isend(0, kTagsOfPart, &byte, 1), Catch::Contains("larger exchange.bucket_mb"));
  CHECK_THROWS_WITH(make_part_transport(whole, {0}, kSpaces), Catch::Contains("more than 1024 groups"));
}
