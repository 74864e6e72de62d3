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

struct Record {
  int from, to;
  double waited_s, transit_s, kilobytes;  // per step
};
std::string named(const std::vector<Record>& records, double step_s) {
  Step step(4);
  for (const Record& of : records) step.message(of.from, of.to, of.waited_s, of.transit_s, of.kilobytes * 1e3);
  return step.named(step_s);
}

// Each record below was measured over 4 ranks. Host 3 has a fiftieth of the others' rate, both ways. Its outgoing card
// is not the busier one and keeps a burst for many steps, so that by chance some of its outgoing links look fast.
TEST_CASE("a host is named although its card lets some messages of one direction through at once", "[comm]") {
  const std::vector<Record> others = {{0, 1, 0.3257, 0.0056, 153.4}, {0, 2, 0.0061, 0.1833, 76.8},
                                      {1, 0, 0.1394, 0.0103, 153.3}, {1, 3, 0.1503, 0.4922, 76.6},
                                      {2, 0, 0.3182, 0.0075, 76.8},  {2, 3, 0.3097, 0.6277, 153.4}};
  std::vector<Record> halving = others, receiving = others;
  halving.insert(halving.end(), {{3, 1, 0.1354, 0.0419, 76.6}, {3, 2, 0.3577, 0.1853, 153.3}});
  CHECK(named(halving, 0.48) ==
        "the link of host h3 limits the exchange: ranks wait up to 309.70 ms per step for messages to and from h3 and "
        "up to 10.30 ms for those between other hosts");
  receiving.insert(receiving.end(), {{3, 1, 0.1369, 0.0216, 76.6}, {3, 2, 0.3307, 0.1445, 153.3}});
  CHECK_THAT(named(receiving, 0.48), Contains("what host h3 receives limits the exchange"));

  // Gossip over the exponential graph.
  CHECK_THAT(named({{0, 1, 0.0576, 0.1535, 88.3},
                    {0, 2, 0.1451, 0.0028, 76.8},
                    {1, 0, 0.0010, 0.0289, 15.4},
                    {1, 2, 0.1707, 0.0014, 88.0},
                    {1, 3, 0.1578, 0.3703, 76.6},
                    {2, 0, 0.0049, 0.1448, 92.0},
                    {2, 3, 0.1854, 0.4649, 88.3},
                    {3, 0, 0.3446, 0.0979, 103.4},
                    {3, 1, 0.2932, 0.0807, 76.6}},
                   0.445),
             Contains("the link of host h3 limits the exchange"));
}

// Gossip over the exponential graph of ranks that compute fast: rank 1 is early at one step and late at the next, so
// that the link from h0 to h1 seems slow, too (its sums of waits and of transits are both large).
TEST_CASE("a host is named by its share of all waits", "[comm]") {
  CHECK_THAT(named({{0, 1, 0.1286, 0.1400, 99.7},
                    {0, 2, 0.1298, 0.0027, 76.7},
                    {1, 0, 0.0072, 0.0283, 30.7},
                    {1, 2, 0.1845, 0.0054, 99.5},
                    {1, 3, 0.1306, 0.4091, 76.6},
                    {2, 0, 0.0063, 0.1295, 107.3},
                    {2, 3, 0.2191, 0.5922, 99.7},
                    {3, 0, 0.3495, 0.1796, 130.2},
                    {3, 1, 0.2800, 0.0644, 76.6}},
                   0.411),
             Contains("the link of host h3 limits the exchange"));
}

// Gossip over the complete graph: h3 sends to h2 last, so that rank 2 waits for all that h3 sends, and nothing that h3
// receives takes half as long per byte.
TEST_CASE("a host is named although messages queue behind others in its card", "[comm]") {
  CHECK_THAT(named({{0, 1, 0.0740, 0.3147, 164.8},
                    {0, 2, 0.0017, 0.5996, 153.4},
                    {0, 3, 0.3046, 1.3642, 153.1},
                    {1, 0, 0.3062, 0.0322, 168.5},
                    {1, 2, 0.0216, 0.3363, 164.6},
                    {1, 3, 0.3195, 0.8473, 153.1},
                    {2, 0, 0.3002, 0.0035, 168.6},
                    {2, 1, 0.3119, 0.0075, 153.1},
                    {2, 3, 0.3602, 1.2125, 164.8},
                    {3, 0, 0.3847, 0.1486, 179.9},
                    {3, 1, 0.6054, 0.4368, 153.1},
                    {3, 2, 0.9675, 0.7302, 153.2}},
                   0.961),
             Contains("the link of host h3 limits the exchange: ranks wait up to 730.20 ms") &&
                 Contains("up to 74.00 ms for those between other hosts"));
}

// One record is of gossip with a late rank 3 over equal links, the other of a server at rank 0, also over equal links.
TEST_CASE("no host is named by its share of the waits where another one's is similar", "[comm]") {
  CHECK(named({{0, 1, 0.0324, 0.0086, 88.2},
               {0, 2, 0.0388, 0.0022, 76.7},
               {1, 0, 0.0101, 0.0239, 15.4},
               {1, 2, 0.0332, 0.0057, 88.0},
               {1, 3, 0.0035, 0.0417, 76.6},
               {2, 0, 0.0370, 0.1021, 92.0},
               {2, 3, 0.0211, 0.0490, 88.2},
               {3, 0, 0.0661, 0.0786, 103.4},
               {3, 1, 0.0733, 0.0351, 76.6}},
              0.064)
            .empty());
  CHECK(named({{0, 1, 0.4187, 0.0358, 161.1},
               {0, 2, 0.2839, 0.1061, 161.1},
               {0, 3, 0.3766, 0.1956, 160.8},
               {1, 0, 0.1458, 0.1486, 161.0},
               {2, 0, 0.1667, 0.4515, 161.1},
               {3, 0, 0.0990, 0.1964, 160.8}},
              0.385)
            .empty());
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
