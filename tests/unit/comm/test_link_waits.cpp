// SPDX-License-Identifier: Apache-2.0
// Which link is named by the times that ranks waited, and what an engine counts of its messages.
#include <catch2/catch.hpp>

#include "comm/links/link_waits.hpp"
#include "comm/peer_times.hpp"

namespace echelon {
namespace {

using Catch::Contains;

// A step with one rank per host; each message has `waited_s` and `transit_s`, and one megabyte.
struct Step {
  LinkWaits waits;

  explicit Step(int hosts) {
    for (int host = 0; host < hosts; ++host) {
      waits.hosts.push_back(host);
      waits.host_names.push_back("h" + std::to_string(host));
    }
    const auto pairs = static_cast<std::size_t>(hosts * hosts);
    waits.waited_s.resize(pairs), waits.transit_s.resize(pairs), waits.bytes.resize(pairs);
  }
  void message(int from, int to, double waited_s, double transit_s, double bytes = 1e6) {
    const std::size_t at = static_cast<std::size_t>(to) * waits.hosts.size() + static_cast<std::size_t>(from);
    waits.waited_s[at] += waited_s, waits.transit_s[at] += transit_s, waits.bytes[at] += bytes;
  }
  std::string named(double step_s = 1) const { return limiting_link(waits, step_s); }
};

TEST_CASE("in a ring in which all wait as long, the host behind the slow link is named", "[comm]") {
  Step ring(4);
  for (int from = 0; from < 4; ++from) {
    const int to = (from + 1) % 4;
    ring.message(from, to, 0.9, from == 3 || to == 3 ? 1.4 : 0.001);
  }
  CHECK(ring.named() ==
        "the link of host h3 limits the exchange: ranks wait up to 900.00 ms per step for messages to and from h3 and "
        "up to 1.00 ms for those between other hosts");
  CHECK(ring.named(10).empty());  // waits are a tenth of the step
}

TEST_CASE("the link of a worker is told from that of the server that all messages pass", "[comm]") {
  Step served(4);
  for (int worker = 1; worker < 4; ++worker) {
    served.message(worker, 0, worker == 2 ? 0.4 : 0.02, worker == 2 ? 0.5 : 0.01);
    served.message(0, worker, 0.4, worker == 2 ? 0.5 : 0.01);
  }
  CHECK_THAT(served.named(), Contains("the link of host h2 limits"));
}

TEST_CASE("a late rank, a starved one and a network that is slow everywhere name nobody", "[comm]") {
  Step late(4), starved(4), uniform(4);
  for (int from = 0; from < 4; ++from)
    for (int to = 0; to < 4; ++to) {
      if (from == to) continue;
      late.message(from, to, from == 3 ? 0.8 : 0.001, to == 3 ? 0.8 : 0.0005);
      starved.message(from, to, 0.5, 0.0005);
      uniform.message(from, to, 0.3, 0.3);
    }
  CHECK(late.named().empty());
  CHECK(starved.named().empty());
  CHECK(uniform.named().empty());
}

TEST_CASE("two slow hosts, one direction, one pair", "[comm]") {
  Step two(6), out(4), pair(4);
  for (int from = 0; from < 6; ++from)
    for (int to = 0; to < 6; ++to)
      if (from != to) two.message(from, to, 0.3, from == 1 || from == 4 || to == 1 || to == 4 ? 0.4 : 0.002);
  for (int from = 0; from < 4; ++from)
    for (int to = 0; to < 4; ++to) {
      if (from == to) continue;
      out.message(from, to, 0.3, from == 2 ? 0.4 : 0.002);
      pair.message(from, to, 0.3, from + to == 1 ? 0.4 : 0.002);
    }
  CHECK_THAT(two.named(), Contains("the links of h1, h4 limit the exchange"));
  CHECK_THAT(out.named(), Contains("what host h2 sends limits the exchange"));
  CHECK_THAT(pair.named(), Contains("the link between h0 and h1 limits the exchange"));
}

TEST_CASE("waits do not overlap, and are those of the message that ends them", "[comm]") {
  PeerTimes times(3);
  times.sent(1, 9);
  times.received(1, 100, 10, 12);
  times.received(2, 50, 10, 12.5);
  times.received(2, 50, 14, 14.25);
  const std::vector<PeerTime> read = times.read();
  CHECK(read[1].sent == 1);
  CHECK(read[1].sent_at_s == 9);
  CHECK(read[1].waited_s == 2);
  CHECK(read[2].waited_s == 0.75);
  CHECK(read[2].received == 2);
  CHECK(read[2].received_at_s == 26.75);
  CHECK(read[2].received_bytes == 100);
}

}  // namespace
}  // namespace echelon
