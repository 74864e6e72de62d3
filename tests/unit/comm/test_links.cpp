// SPDX-License-Identifier: Apache-2.0
// Measures all pairs of ranks: the tournament, blocked and late links between threads, faults of made-up matrices.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "comm/disturbed.hpp"
#include "comm/links/all_pairs.hpp"
#include "comm/links/link_faults.hpp"
#include "comm/links/route.hpp"
#include "comm/links/tournament.hpp"
#include "comm/links/unanswered.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/process.hpp"
#include "tests/support/ranks.hpp"

namespace echelon::test {
namespace {

// Measures with ranks as threads, some of which have faults; returns the links that rank 0 then knows.
AllPairs measured(const std::vector<int>& hosts, const std::vector<std::pair<int, Disturbance>>& faults,
                  double limit_s) {
  AllPairs out;
  run_ranks(
      static_cast<int>(hosts.size()),
      [&](std::unique_ptr<Transport> transport) {
        const int rank = transport->rank();
        for (const auto& [whose, fault] : faults)
          if (whose == rank) transport = make_disturbed(std::move(transport), fault);
        AllPairs all = measure_all_pairs(*transport, {1e-4, limit_s, "eth" + std::to_string(rank)});
        if (rank == 0) out = std::move(all);
      },
      120, hosts);
  return out;
}

// Four hosts with one rank each; links have 100 MB/s and 50 us.
LinkMatrix even_links(int hosts) {
  std::vector<std::string> names;
  std::vector<int> of_rank;
  for (int i = 0; i < hosts; ++i) names.push_back("h" + std::to_string(i + 1)), of_rank.push_back(i);
  LinkMatrix links = LinkMatrix::of(names, of_rank);
  for (int a = 0; a < hosts; ++a)
    for (int b = 0; b < hosts; ++b)
      if (a != b) links.latency_s[links.at(a, b)] = 50e-6, links.bytes_per_s[links.at(a, b)] = 100e6;
  return links;
}

}  // namespace

TEST_CASE("every two players meet once, in rounds of disjoint pairs", "[comm][links]") {
  for (int n = 0; n <= 17; ++n) {
    std::set<std::pair<int, int>> met;
    for (int round = 0; round < tournament_rounds(n); ++round)
      for (int me = 0; me < n; ++me) {
        const int other = opponent_of(me, n, round);
        CAPTURE(n, round, me, other);
        if (other < 0) continue;
        CHECK(other != me);
        CHECK(opponent_of(other, n, round) == me);
        if (me < other) CHECK(met.emplace(me, other).second);
      }
    CHECK(met.size() == static_cast<std::size_t>(n * (n - 1) / 2));
    CHECK(tournament_rounds(n) == (n < 2 ? 0 : n - 1 + n % 2));
  }
}

TEST_CASE("all pairs are measured between and inside hosts", "[comm][links]") {
  const std::vector<int> hosts = {0, 0, 1, 1, 2};
  const AllPairs all = measured(hosts, {}, 20);
  CHECK(all.complete);
  CHECK(all.silent.empty());
  CHECK(all.links.interfaces == std::vector<std::string>{"eth0", "eth2", "eth4"});
  for (int a = 0; a < 5; ++a)
    for (int b = 0; b < 5; ++b) {
      CAPTURE(a, b);
      const std::size_t at = all.links.at(a, b);
      CHECK(std::isnan(all.links.bytes_per_s[at]) == (a == b));
      if (a != b) CHECK(all.links.bytes_per_s[at] > 0);
      if (a != b) CHECK(all.links.latency_s[at] == all.links.latency_s[all.links.at(b, a)]);
    }
  // Ranks of two hosts have the link between the hosts.
  CHECK(all.links.bytes_per_s[all.links.at(1, 3)] == all.links.bytes_per_s[all.links.at(0, 2)]);
  CHECK(find_link_faults(all.links, {}).blocked.empty());
}

TEST_CASE("a link that is cut is blocked, and no other one is blamed for it", "[comm][links]") {
  Disturbance cut;
  cut.cut_at_s = 0;
  cut.cut_from = {2};
  Disturbance back = cut;
  back.cut_from = {1};
  const AllPairs all = measured({0, 1, 2, 3}, {{1, cut}, {2, back}}, 1 * test::patience());
  CHECK_FALSE(all.complete);
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b) CHECK(all.links.blocked(a, b) == (a + b == 3 && a != 0 && b != 0));
  const LinkFaults faults = find_link_faults(all.links, all.silent);
  REQUIRE(faults.blocked.size() == 1);
  CHECK_THAT(faults.blocked[0], Catch::Contains("<->") && Catch::Contains("is blocked"));
}

TEST_CASE("a rank that answers nobody is named once", "[comm][links]") {
  Disturbance gone;
  gone.stop_at_s = 0;
  const AllPairs all = measured({0, 1, 2, 3}, {{3, gone}}, 0.5 * test::patience());
  CHECK(all.silent == std::vector<int>{3});
  const LinkFaults faults = find_link_faults(all.links, all.silent);
  REQUIRE(faults.blocked.size() == 2);
  CHECK_THAT(faults.blocked[0], Catch::Contains("rank 3") && Catch::Contains("did not report"));
  CHECK_THAT(faults.blocked[1], Catch::Contains("from 3 of 3 others"));
}

TEST_CASE("a rank whose messages are delayed has late links", "[comm][links]") {
  Disturbance delayed;
  delayed.delay_s = 0.02;
  const AllPairs all = measured({0, 1, 2, 3}, {{2, delayed}}, 30);
  REQUIRE(all.complete);
  bool named = false;
  for (const std::string& fault : find_link_faults(all.links, {}).slow)
    named = named || (fault.find(all.links.host_names[2] + " is late") == 0);
  CHECK(named);
}

TEST_CASE("slow hosts, slow links and links that are slow one way are named", "[comm][links]") {
  LinkMatrix links = even_links(5);
  CHECK(find_link_faults(links, {}).slow.empty());
  links.bytes_per_s[links.at(0, 3)] = 10e6;
  std::vector<std::string> slow = find_link_faults(links, {}).slow;
  REQUIRE(slow.size() == 1);
  CHECK_THAT(slow[0], Catch::Contains("h1 -> h4 is slow: 9.54 MiB/s; others 95.37 MiB/s"));
  links.bytes_per_s[links.at(3, 0)] = 10e6;
  slow = find_link_faults(links, {}).slow;
  REQUIRE(slow.size() == 1);
  CHECK_THAT(slow[0], Catch::Contains("h1 <-> h4 is slow"));

  links = even_links(5);
  for (const int to : {0, 2, 3, 4}) links.bytes_per_s[links.at(1, to)] = 12e6;
  slow = find_link_faults(links, {}).slow;
  REQUIRE(slow.size() == 1);
  CHECK_THAT(slow[0], Catch::Contains("h2 is slow to 4 of 4 others"));

  // One of three hosts is slow in both directions: four of six links.
  links = even_links(3);
  for (const int to : {0, 2}) links.bytes_per_s[links.at(1, to)] = links.bytes_per_s[links.at(to, 1)] = 12e6;
  slow = find_link_faults(links, {}).slow;
  REQUIRE(slow.size() == 1);
  CHECK_THAT(slow[0], Catch::Contains("h2 is slow to 2 of 2 others"));

  links = even_links(2);
  links.bytes_per_s[links.at(1, 0)] = 30e6;
  slow = find_link_faults(links, {}).slow;
  REQUIRE(slow.size() == 1);
  CHECK_THAT(slow[0], Catch::Contains("h1 -> h2 is faster than in the other direction"));

  links = even_links(4);
  for (const int to : {0, 1, 2}) links.latency_s[links.at(3, to)] = links.latency_s[links.at(to, 3)] = 2e-3;
  slow = find_link_faults(links, {}).slow;
  REQUIRE(slow.size() == 1);
  CHECK_THAT(slow[0], Catch::Contains("h4 is late to 3 of 3 others: latency 2.00 ms"));
}

TEST_CASE("a network goes through its file, and gives medians for prices", "[comm][links]") {
  const TempFolder folder;
  LinkMatrix links = LinkMatrix::of({"n1", "n2"}, {0, 0, 1, 1});
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b) {
      if (a == b) continue;
      const bool inside = a / 2 == b / 2;
      links.latency_s[links.at(a, b)] = inside ? 1e-6 : 40e-6;
      links.bytes_per_s[links.at(a, b)] = inside ? 5e9 : 1e8;
    }
  links.bytes_per_s[links.at(0, 2)] = 0;
  links.latency_s[links.at(0, 2)] = NAN;
  links.transport = "local";
  links.loaded = {{.hosts = 2, .ring_bytes_per_s = 9e7, .shuffle_bytes_per_s = 8e7}};
  write_file_whole(folder / "n.json", link_matrix_json(links));
  const LinkMatrix read = read_link_matrix(folder / "n.json");
  CHECK(link_matrix_json(read) == link_matrix_json(links));
  CHECK(read.blocked(0, 2));
  CHECK(read.loaded.at(0).shuffle_bytes_per_s == 8e7);
  CHECK(network_of(read).inside.bytes_per_s == 5e9);
  CHECK(network_of(read).between.bytes_per_s == 1e8);
  CHECK(network_of(read).between.latency_s == 40e-6);
  CHECK(network_of(even_links(3)).inside.bytes_per_s == 100e6);

  const auto refused = [&](const std::string& text, const char* why) {
    write_file_whole(folder / "bad.json", text);
    CHECK_THROWS_AS(read_link_matrix(folder / "bad.json"), DataError);
    CHECK_THROWS_WITH(read_link_matrix(folder / "bad.json"), Catch::Contains("bad.json") && Catch::Contains(why));
  };
  refused("{", "parse error");
  refused("{}", "bench network");
  std::string text = link_matrix_json(links);
  refused(text.replace(text.find("\"hosts\":2"), 9, "\"hosts\":1"), "loaded: expected at least 2 hosts");
  text = link_matrix_json(links);
  refused(text.replace(text.find("[0,0,1,1]"), 9, "[0,0,1]"), "latency_s");
  text = link_matrix_json(links);
  refused(text.replace(text.find("[0,0,1,1]"), 9, "[0,0,1,7]"), "hosts");
}

TEST_CASE("the host behind a connection that nobody answers is named, others are not", "[comm][links]") {
  const int listens = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in here{};
  here.sin_family = AF_INET, here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof here;
  REQUIRE(bind(listens, reinterpret_cast<sockaddr*>(&here), length) == 0);
  REQUIRE(listen(listens, 0) == 0);
  REQUIRE(getsockname(listens, reinterpret_cast<sockaddr*>(&here), &length) == 0);
  std::vector<int> files = {listens};
  const auto connect_once = [&] {
    files.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    (void)connect(files.back(), reinterpret_cast<sockaddr*>(&here), length);
  };
  connect_once();  // is answered at once, and waits to be accepted
  CHECK(unanswered_hosts().empty());
  for (int i = 0; i < 8; ++i) connect_once();  // there is no room for all of them: they are not answered
  const std::vector<std::string> hosts = unanswered_hosts();
  for (const int file : files) close(file);
  REQUIRE(hosts.size() == 1);
  CHECK_THAT(hosts.front(), Catch::Contains("127.0.0.1"));
  CHECK(unanswered_hosts().empty());
}

TEST_CASE("the route to this very host is found, to no host is not", "[comm][links]") {
  CHECK_THAT(route_to_host("127.0.0.1"), Catch::Contains("lo 127.0.0.1"));
  CHECK(route_to_host("no-such-host.invalid").empty());
}

}  // namespace echelon::test
