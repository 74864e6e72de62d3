// SPDX-License-Identifier: Apache-2.0
// Plans on a virtual clock, compared with formulas where nothing contends.
#include <catch2/catch.hpp>

#include "comm/collective/algorithms.hpp"
#include "comm/collective/plan_time.hpp"

using namespace echelon;

namespace {

constexpr double kLatency_s = 10e-6, kRate = 1e9;
const Network kFlat = {.inside = {kLatency_s, kRate}, .between = {kLatency_s, kRate}, .add_bytes_per_s = 1e30};

double seconds(const std::string& name, const AllreduceRequest& with, const Network& network) {
  std::vector<std::shared_ptr<const Plan>> plans;
  AllreduceRequest request = with;
  std::vector<int> hosts = with.hosts;
  for (int r = 0; hosts.size() < static_cast<std::size_t>(with.ranks); ++r) hosts.push_back(r);
  for (request.rank = 0; request.rank < request.ranks; ++request.rank) plans.push_back(make_allreduce(name, request));
  return plan_time_s(plans, hosts, network, 4);
}

// Seconds by alpha and beta alone: `steps` messages one after another that carry `elems` together.
double of(double steps, double elems) { return steps * kLatency_s + elems * 4 / kRate; }

}  // namespace

TEST_CASE("plan_time is alpha-beta where cards are free", "[comm]") {
  constexpr std::int64_t n = 1 << 20;
  AllreduceRequest request{.ranks = 8, .elems = n, .segment_elems = n};
  CHECK(seconds("ring", request, kFlat) == Approx(of(14, 14.0 / 8 * n)));
  CHECK(seconds("halving_doubling", request, kFlat) == Approx(of(6, 14.0 / 8 * n)));
  CHECK(seconds("butterfly", request, kFlat) == Approx(of(3, 3.0 * n)));
  CHECK(seconds("binomial", request, kFlat) == Approx(of(6, 6.0 * n)));
  request.elems = 0;
  CHECK(seconds("ring", request, kFlat) == 0);
}

TEST_CASE("plan_time sees segments overlap, shared cards and the time to add", "[comm]") {
  constexpr std::int64_t n = 1 << 20;
  AllreduceRequest whole{.ranks = 15, .elems = n, .segment_elems = n}, cut = whole;
  cut.segment_elems = n / 64;
  CHECK(seconds("tree", cut, kFlat) < 0.6 * seconds("tree", whole, kFlat));

  // Four ranks of a host share its card: a ring in which every rank sends to another host pays for it.
  AllreduceRequest spread{.ranks = 8, .elems = n, .hosts = {0, 1, 0, 1, 0, 1, 0, 1}}, near = spread;
  near.hosts = {0, 0, 0, 0, 1, 1, 1, 1};
  Network slow = kFlat;
  slow.between.bytes_per_s = kRate / 50;
  CHECK(seconds("ring", spread, slow) > 2 * seconds("ring", near, slow));
  CHECK(seconds("hierarchical", spread, slow) < 0.7 * seconds("ring", spread, slow));

  Network adding = kFlat;
  adding.add_bytes_per_s = kRate;
  AllreduceRequest pair{.ranks = 2, .elems = n, .segment_elems = n};
  CHECK(seconds("butterfly", pair, adding) == Approx(of(1, 2.0 * n)));
}

TEST_CASE("plan_time lets every pair of cards work at the same time", "[comm]") {
  constexpr std::int64_t n = 1 << 16;
  for (const int ranks : {4, 8}) {
    AllreduceRequest request{.ranks = ranks, .elems = n, .segment_elems = n};
    CHECK(seconds("naive", request, kFlat) == Approx(of(1, (ranks - 1.0) * n) + (ranks - 2) * kLatency_s / 2));
  }
}

TEST_CASE("plan_times: collectives share cards, and begin when their ranks are ready", "[comm]") {
  constexpr std::int64_t n = 1 << 20;
  AllreduceRequest request{.ranks = 4, .elems = n, .segment_elems = n};
  TimedPlans ring;
  for (request.rank = 0; request.rank < request.ranks; ++request.rank)
    ring.plans.push_back(make_allreduce("ring", request));
  const std::vector<int> hosts = {0, 1, 2, 3};
  const double alone_s = of(6, 6.0 / 4 * n);
  TimedPlans late = ring;
  late.ready_s = {1, 1, 1, 2};
  CHECK(plan_times_s({ring}, hosts, kFlat, 4).front() == Approx(alone_s));
  CHECK(plan_times_s({ring}, hosts, kFlat, 2).front() == Approx(of(6, 3.0 / 4 * n)));
  CHECK(plan_times_s({ring, late}, hosts, kFlat, 4).front() == Approx(alone_s));
  CHECK(plan_times_s({ring, late}, hosts, kFlat, 4).back() == Approx(2 + alone_s));
  const std::vector<double> together = plan_times_s({ring, ring}, hosts, kFlat, 4);
  CHECK(together.back() == Approx(2 * alone_s).epsilon(0.02));
}

TEST_CASE("plan_time: hosts behind other switches share the uplink", "[comm]") {
  Network tight = kFlat;
  tight.hosts_per_switch = 2, tight.uplink_bytes_per_s = kRate / 2;
  constexpr std::int64_t n = 1 << 20;
  const AllreduceRequest request{.ranks = 4, .elems = n, .segment_elems = n};
  CHECK(seconds("butterfly", request, kFlat) == Approx(of(2, 2.0 * n)));
  // The second round crosses: two messages of each switch use its uplink one after another, at half the rate.
  CHECK(seconds("butterfly", request, tight) > of(2, 1.0 * n + 3.0 * n));
}
