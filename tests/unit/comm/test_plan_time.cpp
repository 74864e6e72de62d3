// Plans on a virtual clock, against formulas where nothing contends.
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

// alpha and beta alone: `steps` messages one after another that carry `elems` together.
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

  // Four ranks of a host share its card: a ring that crosses from host to host with every rank pays for it.
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
