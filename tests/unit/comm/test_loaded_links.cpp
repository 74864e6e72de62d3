// SPDX-License-Identifier: Apache-2.0
// Bandwidth of hosts while all of them send: rates never exceed the cards, traffic has the right shape, waits end.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "base/error.hpp"
#include "comm/disturbed.hpp"
#include "comm/links/loaded_links.hpp"
#include "comm/shaped.hpp"
#include "tests/support/ranks.hpp"

namespace echelon::test {
namespace {

struct Loaded {
  std::vector<LoadedLinks> links;                 // of rank 0
  std::vector<std::vector<double>> sent_to = {};  // [rank][peer], bytes
};

Loaded loaded(int ranks, std::vector<int> leaders, const LoadedLinksOptions& options,
              const std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)>& wrap) {
  Loaded out;
  out.sent_to.resize(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](std::unique_ptr<Transport> plain) {
    const std::unique_ptr<Transport> transport = wrap(std::move(plain));
    const int rank = transport->rank();
    if (std::find(leaders.begin(), leaders.end(), rank) == leaders.end()) return;
    std::vector<LoadedLinks> links = measure_loaded_links(*transport, leaders, options);
    out.sent_to[static_cast<std::size_t>(rank)] = transport->bytes_to_peers();
    if (rank == leaders.front()) out.links = std::move(links);
  });
  return out;
}

}  // namespace

TEST_CASE("hosts that all send reach at most the rate of their cards", "[comm][links]") {
  const NetworkShape shape{.bytes_per_s = 20e6};
  const auto shaped = [&](std::unique_ptr<Transport> plain) { return make_shaped(std::move(plain), shape); };
  const Loaded five = loaded(5, {0, 1, 2, 3, 4}, {.seconds = 0.05, .bytes_per_s = 20e6}, shaped);
  std::vector<int> hosts;
  for (const LoadedLinks& one : five.links) {
    hosts.push_back(one.hosts);
    for (const double rate : {one.ring_bytes_per_s, one.shuffle_bytes_per_s}) {
      CHECK(rate > 0);
      CHECK(rate < 1.01 * shape.bytes_per_s);  // a card is not faster, however loaded the machine is
    }
  }
  CHECK(hosts == std::vector<int>{2, 4, 5});
  CHECK(five.links[0].ring_bytes_per_s == five.links[0].shuffle_bytes_per_s);
}

TEST_CASE("a ring and a shuffle send as many bytes, to one host and to all", "[comm][links]") {
  const auto plain = [](std::unique_ptr<Transport> transport) { return transport; };
  const LoadedLinksOptions options{.seconds = 0.01, .bytes_per_s = 240e6};
  const Loaded some = loaded(5, {0, 2, 3, 4}, options, plain);
  REQUIRE(some.links.size() == 2);
  CHECK(some.links[1].hosts == 4);
  const double bytes = options.seconds * options.bytes_per_s;
  // Three turns each of a ring of 2, a ring of 4 and a shuffle of 4, in which the next host gets a third.
  const std::vector<double>& first = some.sent_to[0];
  if (first.empty()) return;  // this transport does not count by peer
  CHECK(first[1] == 0);       // not a leader
  CHECK(first[2] == Approx(3 * (1 + 1 + 1.0 / 3) * bytes).epsilon(0.1));
  CHECK(first[3] == Approx(bytes).epsilon(0.1));
  CHECK(first[4] == Approx(bytes).epsilon(0.1));
  CHECK(some.sent_to[3][0] == Approx(bytes).epsilon(0.1));
  CHECK(some.sent_to[4][0] == Approx((3 + 1) * bytes).epsilon(0.1));
}

TEST_CASE("a host that does not take part ends the measurement of load by its limit", "[comm][links]") {
  CHECK_THROWS_WITH(loaded(3, {0, 1, 2}, {.seconds = 0.001, .bytes_per_s = 1e8, .limit_s = 0.5},
                           [](std::unique_ptr<Transport> plain) {
                             return plain->rank() == 2 ? make_disturbed(std::move(plain), {.stop_at_s = 0})
                                                       : std::move(plain);
                           }),
                    Catch::Contains("took more than 0.5 s"));
}

}  // namespace echelon::test
