// The closed forms against the plans themselves on virtual time, where both can be computed.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "predictor/plan_pricer.hpp"

using namespace echelon;

namespace {

const Network kNetworks[] = {
    {.inside = {1e-6, 5e9}, .between = {50e-6, 1.18e8}, .add_bytes_per_s = 8e9},
    {.inside = {1e-6, 2e10}, .between = {10e-6, 3e9}, .add_bytes_per_s = 1e10},
    {.inside = {1e-6, 2e10}, .between = {200e-6, 1.2e9}, .add_bytes_per_s = 1e30},
};
constexpr std::int64_t kElems[] = {1000, 65536, 450'007};

// Largest error of `predicted` over networks and sizes.
template <class Predicted>
void check(const std::string& algorithm, int ranks, double most, const Predicted& predicted, int ranks_a_host = 1) {
  for (const Network& network : kNetworks)
    for (const std::int64_t elems : kElems) {
      if (algorithm == "naive" && elems * ranks > 20'000'000) continue;
      const Collective what{.algorithm = algorithm, .elems = elems, .segment_elems = 65536};
      const RankPlacement placement{.ranks = ranks, .ranks_a_host = ranks_a_host};
      const double simulated = simulated_s(what, placement, network);
      INFO(algorithm << ", " << ranks << " ranks, " << elems << " elements, latency " << network.between.latency_s);
      CHECK(predicted(what, placement, network) == Approx(simulated).epsilon(most));
    }
}

double closed(const Collective& what, const RankPlacement& placement, const Network& network) {
  return closed_cost(what, placement, network).time_s;
}

}  // namespace

TEST_CASE("closed forms are the plans' own times within 1 %", "[predictor]") {
  for (const int ranks : {2, 3, 7, 8, 16, 33}) {
    check("ring", ranks, 0.01, closed);
    check("naive", ranks, 0.01, closed);
    check("direct", ranks, 0.015, closed);
  }
  for (const int ranks : {2, 4, 8, 16}) check("butterfly", ranks, 0.01, closed);
}

TEST_CASE("with the error of fewer ranks they are so for many", "[predictor]") {
  const auto corrected = [](const Collective& what, const RankPlacement& placement, const Network& network) {
    PlanPricer pricer(network, placement.ranks_a_host, 0);
    return pricer.cost(what, placement.ranks).time_s;
  };
  {
    constexpr int ranks = 64;
    check("halving_doubling", ranks, 0.01, corrected);
    check("butterfly", ranks, 0.01, corrected);
    check("tree", ranks, 0.06, corrected);
    check("binomial", ranks, 0.08, corrected);
    check("server", ranks, 0.06, corrected);
  }
  check("halving_doubling", 100, 0.08, corrected);
}

TEST_CASE("hosts of several ranks share a card", "[predictor]") {
  for (const int ranks : {16, 32}) check("ring", ranks, 0.02, closed, 4);
  check("naive", 8, 0.15, closed, 4);
}

TEST_CASE("few steps run on virtual time, the library's never", "[predictor]") {
  PlanPricer pricer(kNetworks[0], 1);
  const Collective ring{.algorithm = "ring", .elems = 100'000};
  const double time_s = pricer.cost(ring, 4).time_s;
  CHECK(pricer.all_simulated());
  CHECK(time_s == simulated_s(ring, {.ranks = 4, .ranks_a_host = 1}, kNetworks[0]));
  CHECK(pricer.cost(ring, 1).time_s == 0);
  CHECK(pricer.cost(ring, 10'000).time_s > time_s);
  CHECK(!pricer.all_simulated());
  CHECK(pricer.cost({.algorithm = "mpi", .elems = 100'000}, 4).time_s > 0);
  CHECK(pricer.cost(ring, 4).busy_s <= time_s);
}

TEST_CASE("messages that leave an over-subscribed switch are slower", "[predictor]") {
  Network network = kNetworks[1];
  const RankPlacement placement{.ranks = 16, .ranks_a_host = 1};
  for (const std::string algorithm : {"halving_doubling", "naive", "ring"}) {
    const Collective what{.algorithm = algorithm, .elems = 300'000, .segment_elems = 65536};
    network.hosts_per_switch = 0;
    const double flat = simulated_s(what, placement, network), flat_closed = closed(what, placement, network);
    network.hosts_per_switch = 4, network.uplink_bytes_per_s = network.between.bytes_per_s;  // 4:1
    const double tight = simulated_s(what, placement, network), tight_closed = closed(what, placement, network);
    INFO(algorithm);
    if (algorithm == "ring") {  // one message a round leaves each switch
      CHECK(tight == Approx(flat).epsilon(0.02));
      CHECK(tight_closed == flat_closed);
    } else {
      CHECK(tight > 1.2 * flat);
      CHECK(tight_closed / flat_closed == Approx(tight / flat).epsilon(0.35));
    }
  }
}
