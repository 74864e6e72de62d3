// SPDX-License-Identifier: Apache-2.0
// Distribution of parameters over servers (exchange/server/partition.hpp).
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <string>

#include "comm/collective/server.hpp"
#include "exchange/server/partition.hpp"
#include "tests/support/random.hpp"

using namespace echelon;

namespace {

ExchangeConfig with_partition(ServerPartition partition) {
  ExchangeConfig config;
  config.strategy = "server";
  config.server.partition = partition;
  return config;
}

}  // namespace

TEST_CASE("whole parameters lie on one server each, and no server has much more than its share", "[exchange]") {
  for (int trial = 0; trial < 200; ++trial) {
    const auto counts = test::random_integers(3, 0, 40, "counts" + std::to_string(trial));
    ParameterSet set;
    std::int64_t largest = 0;
    for (const std::int64_t root :
         test::random_integers(1 + static_cast<std::size_t>(counts[0]), 1, 70, "sizes" + std::to_string(trial))) {
      set.add("p" + std::to_string(set.size()), Shape{root * root}, {});
      largest = std::max(largest, root * root);
    }
    AllreduceRequest request;
    request.ranks = 1 + static_cast<int>(counts[1] % 9);
    request.servers = static_cast<int>(counts[2] % (request.ranks + 1));
    const int servers = server_count(request);
    CAPTURE(trial, set.size(), request.ranks, servers);
    std::vector<std::int64_t> held(static_cast<std::size_t>(request.ranks));
    std::int64_t at = set.elems();
    for (const auto& [range, of] :
         partition_over_servers(with_partition(ServerPartition::variables), request, set, DType::f32)) {
      CHECK(range.end == at);
      at = range.begin;
      const Parts parts = server_parts(of);
      CHECK(std::count_if(parts.begin(), parts.end(), [](ElemRange part) { return !part.empty(); }) == 1);
      for (std::size_t r = 0; r < parts.size(); ++r) held[r] += parts[r].elems();
      CHECK(
          std::any_of(set.all().begin(), set.all().end(), [&](const Parameter& p) { return p.begin == range.begin; }));
    }
    CHECK(at == 0);
    CHECK(std::accumulate(held.begin(), held.end(), std::int64_t{0}) == set.elems());
    // A bucket holds at most an s-th of the elements and one more parameter; the least loaded server takes each bucket.
    CHECK(*std::max_element(held.begin(), held.end()) <= 2 * set.elems() / servers + largest);
  }
}

TEST_CASE("ranges are even parts of every bucket", "[exchange]") {
  ParameterSet set;
  set.add("a", Shape{1000}, {});
  set.add("b", Shape{7}, {});
  AllreduceRequest request{.ranks = 3};
  for (const auto& [range, of] :
       partition_over_servers(with_partition(ServerPartition::ranges), request, set, DType::f64))
    for (const ElemRange part : server_parts(of)) CHECK(std::abs(3 * part.elems() - range.elems()) < 3);
}
