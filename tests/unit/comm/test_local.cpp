#include <catch2/catch.hpp>

#include "base/check.hpp"
#include "base/error.hpp"
#include "comm/local/local.hpp"
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
