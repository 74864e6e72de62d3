// SPDX-License-Identifier: Apache-2.0
// Compares the closed forms with the plans themselves on virtual time, where both can be computed.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "planner/plan_pricer.hpp"

using namespace echelon;

namespace {

const Network kNetworks[] = {
    {.inside = {1e-6, 5e9}, .between = {50e-6, 1.18e8}, .add_bytes_per_s = 8e9},
    {.inside = {1e-6, 2e10}, .between = {10e-6, 3e9}, .add_bytes_per_s = 1e10},
    {.inside = {1e-6, 2e10}, .between = {200e-6, 1.2e9}, .add_bytes_per_s = 1e30},
};
constexpr std::int64_t kElems[] = {1000, 65536, 450'007};

// Checks the largest error of `predicted` over networks and sizes.
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

// Draws uniformly between the bounds on a logarithmic scale.
class Draws {
 public:
  explicit Draws(const char* name) : random_(1, name) {}
  double operator()(double least, double most) { return least * std::pow(most / least, random_.uniform(next_++)); }

 private:
  HashRng random_;
  std::uint64_t next_ = 0;
};

struct DrawnCase {
  Network network;
  Collective what;
  RankPlacement placement;
};

DrawnCase drawn(Draws& draws, const std::string& algorithm, int most_ranks) {
  return {.network = {.inside = {draws(1e-6, 1e-5), draws(5e9, 2e10)},
                      .between = {draws(2e-6, 2e-4), draws(1e7, 1e10)},
                      .add_bytes_per_s = draws(5e9, 1e12)},
          .what = {.algorithm = algorithm,
                   .elems = std::llround(draws(500, algorithm == "naive" ? 1e5 : 1e6)),
                   .segment_elems = 65536},
          .placement = {.ranks = static_cast<int>(draws(2, most_ranks)), .ranks_a_host = 1}};
}

}  // namespace

TEST_CASE("closed forms that are called exact are the plans' own times within 1 %", "[planner]") {
  for (const std::string algorithm : {"ring", "naive", "direct", "halving_doubling", "butterfly"}) {
    Draws draws(algorithm.c_str());
    for (int turn = 0; turn < 40; ++turn) {
      DrawnCase one = drawn(draws, algorithm, 70);
      if (algorithm == "halving_doubling" || algorithm == "butterfly")
        one.placement.ranks = static_cast<int>(std::bit_floor(static_cast<unsigned>(one.placement.ranks)));
      const double simulated = simulated_s(one.what, one.placement, one.network);
      CAPTURE(algorithm, one.placement.ranks, one.what.elems, one.network.between.latency_s,
              one.network.between.bytes_per_s);
      CHECK(model_error(one.what, one.placement) == 0.01);
      const double formula_s = PlanPricer(one.network, 1, 0).cost(one.what, one.placement.ranks).time_s;
      CHECK(formula_s == Approx(simulated).epsilon(algorithm == "direct" ? 0.015 : 0.01));
    }
  }
}

TEST_CASE("others are simulated, and beyond that within the error that is told", "[planner]") {
  for (const std::string algorithm : {"halving_doubling", "butterfly", "tree", "binomial", "server"}) {
    Draws draws(algorithm.c_str());
    for (int turn = 0; turn < 15; ++turn) {
      DrawnCase one = drawn(draws, algorithm, 130);
      if (std::has_single_bit(static_cast<unsigned>(one.placement.ranks))) ++one.placement.ranks;
      const int ranks = one.placement.ranks;
      const double simulated = simulated_s(one.what, one.placement, one.network);
      PlanPricer pricer(one.network, 1), formula(one.network, 1, 0);
      CAPTURE(algorithm, ranks, one.what.elems, one.network.between.latency_s, one.network.between.bytes_per_s);
      CHECK(pricer.cost(one.what, ranks).time_s == simulated);
      CHECK(pricer.error() == 0);
      CHECK(formula.cost(one.what, ranks).time_s == Approx(simulated).epsilon(model_error(one.what, one.placement)));
      CHECK(formula.error() == model_error(one.what, one.placement));
    }
  }
}

TEST_CASE("hosts of several ranks share a card", "[planner]") {
  for (const int ranks : {16, 32}) check("ring", ranks, 0.02, closed, 4);
  check("naive", 8, 0.15, closed, 4);
}

TEST_CASE("few steps run on virtual time, the library's never", "[planner]") {
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

TEST_CASE("messages that leave an over-subscribed switch are slower", "[planner]") {
  Network network = kNetworks[1];
  const RankPlacement placement{.ranks = 16, .ranks_a_host = 1};
  for (const std::string algorithm : {"halving_doubling", "naive", "ring"}) {
    const Collective what{.algorithm = algorithm, .elems = 300'000, .segment_elems = 65536};
    network.hosts_per_switch = 0;
    const double flat = simulated_s(what, placement, network), flat_closed = closed(what, placement, network);
    network.hosts_per_switch = 4, network.uplink_bytes_per_s = network.between.bytes_per_s;  // 4:1
    const double tight = simulated_s(what, placement, network), tight_closed = closed(what, placement, network);
    INFO(algorithm);
    if (algorithm == "ring") {  // each switch sends one message a round
      CHECK(tight == Approx(flat).epsilon(0.02));
      CHECK(tight_closed == flat_closed);
    } else {
      CHECK(tight > 1.2 * flat);
      CHECK(tight_closed / flat_closed == Approx(tight / flat).epsilon(0.35));
    }
  }
}
