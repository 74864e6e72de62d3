// SPDX-License-Identifier: Apache-2.0
// Lost ranks on virtual time: all remaining ranks reach one verdict, whichever ranks die, stop or come back, and when.
#include "job/loss_watch.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <optional>
#include <set>

#include "base/hash_rng.hpp"
#include "comm/protocol/driver.hpp"
#include "comm/virtual/world.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kTimeout_s = 1, kLook_s = 0.02;

struct Fate {
  double dies_s = kNever;
  double stops_s = kNever, stopped_s = 0;  // does nothing from stops_s on, for stopped_s
};

class WatchedRank final : public VirtualActor, private ProtocolHost {
 public:
  WatchedRank(int rank, const std::vector<int>& hosts, Fate its_fate, VirtualWorld& world)
      : fate(its_fate),
        transport_(world.transport(rank)),
        machine_(rank, hosts, kTimeout_s),
        driver_(machine_, *this) {}

  bool pass() override {
    const double now = transport_->clock().now_s();
    if (ended() || now >= fate.dies_s || (now >= fate.stops_s && now < fate.stops_s + fate.stopped_s)) return false;
    bool moved = false;
    for (auto it = posts_.begin(); it != posts_.end() && it->first <= now; it = posts_.erase(it), moved = true)
      driver_.post(static_cast<Token>(it->second));
    return driver_.pass(*transport_, budget) || moved;
  }
  bool done() const override { return ended() || fate.dies_s < kNever || transport_->clock().now_s() >= until_s; }
  double wakes_at_s() const override {
    const double now = transport_->clock().now_s();
    if (ended() || now >= fate.dies_s || now >= until_s) return kNever;
    if (now >= fate.stops_s && now < fate.stops_s + fate.stopped_s) return fate.stops_s + fate.stopped_s;
    return std::min({driver_.wakes_at_s(), posts_.empty() ? kNever : posts_.begin()->first, until_s});
  }
  void post_at(double time_s, int gone) { posts_.emplace(time_s, gone); }
  bool ended() const { return verdict.has_value(); }
  bool gave_up(int rank) const { return verdict && std::count(verdict->lost.begin(), verdict->lost.end(), rank) > 0; }

  Fate fate;
  double until_s = kNever;  // from then on it need not decide anything
  std::optional<LossWatch::Verdict> verdict;
  SendBudget budget;
  double decided_s = 0;
  std::exception_ptr error;

 private:
  void on_notified(Token, double now_s) override {
    verdict = machine_.verdict();
    decided_s = now_s;
  }
  void failed(std::exception_ptr why) override { error = why; }

  std::unique_ptr<Transport> transport_;
  LossWatch machine_;
  ProtocolDriver driver_;
  std::multimap<double, int> posts_;
};

using Ranks = std::vector<std::unique_ptr<WatchedRank>>;

// Only the ranks of its host notice that a dead rank's process is gone.
Ranks run(VirtualWorld& world, const std::vector<int>& hosts, const std::vector<Fate>& fates, double until_s = kNever,
          int sends = 8) {
  Ranks ranks;
  std::vector<VirtualActor*> actors;
  for (std::size_t r = 0; r < fates.size(); ++r) {
    ranks.push_back(std::make_unique<WatchedRank>(static_cast<int>(r), hosts, fates[r], world));
    ranks.back()->until_s = until_s;
    ranks.back()->budget = SendBudget(sends);
    actors.push_back(ranks.back().get());
  }
  for (std::size_t r = 0; r < fates.size(); ++r)
    for (std::size_t other = 0; other < fates.size(); ++other)
      if (fates[r].dies_s < kNever && other != r && hosts[other] == hosts[r])
        ranks[other]->post_at(fates[r].dies_s + kLook_s * (1 + static_cast<double>(other) / 8), static_cast<int>(r));
  world.run(actors, 1000);
  for (const auto& rank : ranks)
    if (rank->error) std::rethrow_exception(rank->error);
  return ranks;
}

// Checks that all ranks that live to the end have one verdict, with all ranks that died before `until_s`.
void check_agreement(const Ranks& ranks, double until_s = 0) {
  const WatchedRank* first = nullptr;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const WatchedRank& rank = *ranks[r];
    if (rank.fate.dies_s < kNever || rank.gave_up(static_cast<int>(r))) continue;
    CAPTURE(r);
    REQUIRE(rank.ended());
    if (!first) first = &rank;
    CHECK(rank.verdict->lost == first->verdict->lost);
    CHECK(rank.verdict->goes_on == first->verdict->goes_on);
  }
  REQUIRE(first);
  for (std::size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r]->fate.dies_s < until_s) CHECK(first->gave_up(static_cast<int>(r)));
}

VirtualNetwork network_of(const std::vector<int>& hosts, std::uint64_t seed) {
  return {.between_hosts = {.latency_s = 2e-3, .jitter = 3},
          .inside_host = {.latency_s = 1e-4, .jitter = 3},
          .hosts = hosts,
          .seed = seed};
}

}  // namespace

TEST_CASE("ranks that are killed are agreed on by all others, whoever they are", "[train][loss]") {
  const HashRng random(test::test_seed(), "losses");
  for (std::uint64_t round = 0; round < 400; ++round) {
    const HashRng draw = random.at(round);
    const auto k = 2 + draw.below(0, 8);
    std::vector<int> hosts;
    std::vector<Fate> fates(k);
    for (std::size_t r = 0; r < k; ++r) hosts.push_back(static_cast<int>(r / (1 + draw.below(1, 3))));
    const bool at_once = draw.below(3, 2) == 0;
    const auto deaths = 1 + draw.below(2, (k - 1) / 2 + 1 > k - 1 ? k - 1 : (k - 1) / 2 + 1);
    for (std::uint64_t d = 0; d < deaths; ++d)
      fates[draw.below(10 + d, k)].dies_s = 3 + draw.uniform(20 + d) * (at_once ? 0.001 : 0.5);
    CAPTURE(round, k, hosts);
    VirtualWorld world(static_cast<int>(k), network_of(hosts, round));
    const Ranks ranks = run(world, hosts, fates);
    check_agreement(ranks, at_once ? kNever : 0);
    std::size_t dead = 0;
    for (std::size_t r = 0; r < k; ++r) {
      dead += fates[r].dies_s < kNever;
      if (fates[r].dies_s == kNever) CHECK(ranks[r]->decided_s < 3.5 + kTimeout_s + 4 * 0.5 * static_cast<double>(k));
    }
    for (const auto& rank : ranks)
      if (rank->ended() && at_once) CHECK(rank->verdict->lost.size() == dead);
  }
}

TEST_CASE("nobody is lost while all ranks answer, however slowly", "[train][loss]") {
  for (const std::size_t k : {1, 2, 3, 7}) {
    const std::vector<int> hosts(k, 0);
    std::vector<Fate> fates(k);
    fates.back() = {.stops_s = 2, .stopped_s = 0.7 * kTimeout_s};
    VirtualWorld world(static_cast<int>(k), network_of(hosts, k));
    for (const auto& rank : run(world, hosts, fates, 10)) CHECK_FALSE(rank->ended());
  }
}

TEST_CASE("a rank that was stopped for too long is given up, and learns it when it comes back", "[train][loss]") {
  const HashRng random(test::test_seed(), "stops");
  for (std::uint64_t round = 0; round < 400; ++round) {
    const HashRng draw = random.at(round);
    const auto k = 2 + draw.below(0, 6);
    std::vector<int> hosts(k);
    for (std::size_t r = 0; r < k; ++r) hosts[r] = draw.below(1, 2) == 0 ? 0 : static_cast<int>(r);
    std::vector<Fate> fates(k);
    const auto stopped = draw.below(2, k), dead = draw.below(3, k);
    fates[stopped] = {.stops_s = 2 + draw.uniform(4), .stopped_s = 2 + 4 * draw.uniform(5)};
    if (k > 2 && dead != stopped) fates[dead].dies_s = 2 + 3 * draw.uniform(6);
    CAPTURE(round, k, hosts, stopped, dead);
    VirtualWorld world(static_cast<int>(k), network_of(hosts, round));
    const Ranks ranks = run(world, hosts, fates);
    check_agreement(ranks);
  }
}

TEST_CASE("a rank that is stopped while the others agree never has a verdict of its own", "[train][loss]") {
  const HashRng random(test::test_seed(), "pauses");
  int given_up = 0;
  for (std::uint64_t round = 0; round < 2000; ++round) {
    const HashRng draw = random.at(round);
    const auto k = 3 + draw.below(0, 4);
    const std::vector<int> hosts(k, 0);
    std::vector<Fate> fates(k);
    const auto dead = draw.below(1, k), stopped = (dead + 1 + draw.below(2, k - 1)) % k;
    fates[dead].dies_s = 2;
    fates[stopped] = {.stops_s = 2 + 0.2 * draw.uniform(3), .stopped_s = 2 * draw.uniform(4)};
    CAPTURE(round, k, dead, stopped, fates[stopped].stops_s, fates[stopped].stopped_s);
    VirtualWorld world(static_cast<int>(k), network_of(hosts, round));
    const Ranks ranks = run(world, hosts, fates);
    check_agreement(ranks);
    given_up += ranks[stopped]->gave_up(static_cast<int>(stopped));
  }
  CHECK(given_up > 100);
  CHECK(given_up < 1900);
}

TEST_CASE("a leader that dies while its verdict is on the way leaves one verdict behind", "[train][loss]") {
  const HashRng random(test::test_seed(), "leaders");
  int half_told = 0;
  for (std::uint64_t round = 0; round < 500; ++round) {
    const HashRng draw = random.at(round);
    const auto k = 4 + draw.below(0, 4);
    std::vector<int> hosts(k);
    for (std::size_t r = 0; r < k; ++r) hosts[r] = static_cast<int>(r);
    hosts[k - 1] = 0;
    std::vector<Fate> fates(k);
    fates[k - 1].dies_s = 2;
    fates[0].dies_s = 2 + kLook_s + 0.2 * draw.uniform(1);
    CAPTURE(round, k, fates[0].dies_s);
    VirtualNetwork network = network_of(hosts, round);
    network.between_hosts.bytes_per_s = 1000;  // messages of 10 bytes leave one after another
    VirtualWorld world(static_cast<int>(k), network);
    const Ranks ranks = run(world, hosts, fates, kNever, 1);
    check_agreement(ranks);
    half_told += ranks[1]->verdict->lost.size() == 1;
  }
  CHECK(half_told > 20);
  CHECK(half_told < 480);
}

TEST_CASE("ranks that may be cut off from the rest do not go on", "[train][loss]") {
  // 2 of 5 ranks, on a host of their own, hear nothing from the others.
  const std::vector<int> hosts = {0, 0, 1, 1, 1};
  std::vector<Fate> fates(5);
  for (const std::size_t r : {2, 3, 4}) fates[r] = {.stops_s = 2, .stopped_s = 900};
  VirtualWorld world(5, network_of(hosts, 1));
  const Ranks few = run(world, hosts, fates, 100);
  for (const std::size_t r : {0, 1}) {
    REQUIRE(few[r]->ended());
    CHECK_FALSE(few[r]->verdict->goes_on);
  }
  // The 3 others hear nothing.
  for (const std::size_t r : {2, 3, 4}) fates[r] = {};
  for (const std::size_t r : {0, 1}) fates[r] = {.stops_s = 2, .stopped_s = 900};
  VirtualWorld other(5, network_of(hosts, 1));
  const Ranks many = run(other, hosts, fates, 100);
  for (const std::size_t r : {2, 3, 4}) {
    REQUIRE(many[r]->ended());
    CHECK(many[r]->verdict->goes_on);
    CHECK(many[r]->verdict->lost == std::vector<int>{0, 1});
  }
}

}  // namespace echelon
