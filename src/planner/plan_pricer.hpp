// SPDX-License-Identifier: Apache-2.0
// The time of an all-reduce for any number of ranks. If its plans have few steps, they are simulated on virtual time.
// Otherwise the closed form (plan_cost.hpp) is used; if it is not exact, the error that it has for k0 ranks, for which
// both can be computed, corrects it:
//
//   T(k) = closed(k) + sim(k0) - closed(k0)            with the same buffer: halving_doubling, butterfly
//   T(k) = closed(k) sim(k0) / closed(k0)              with a buffer of k0 / k: parts of one size on every rank
//   T(k) = closed(k) + e(k0) + (l - l0)(e(k0) - e(k0 / 2))   tree, binomial: e = sim - closed by levels l = log2 k
//
// k0 is 32, or 24 if k is not a power of two, but at least four hosts. model_error() bounds the remaining error. Closed
// forms are within 1 % only if every card always has exactly one message to send: if several messages wait for one
// card, their order decides, and one more element in the buffer may reverse it. Plans of libraries (mpi, nccl) have no
// steps and are not simulated.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <tuple>

#include "comm/collective/algorithms.hpp"
#include "planner/plan_cost.hpp"

namespace echelon::inline planner {

// The request of rank 0, without hosts.
AllreduceRequest request_of(const Collective& collective, int ranks);
// Simulates the plans of all ranks on virtual time. Throws ConfigError for algorithms without plans (mpi, nccl).
double simulated_s(const Collective& collective, const RankPlacement& placement, const Network& network);
// Estimates the number of steps of the plans of all ranks together; infinity if there are no plans.
double plan_steps(const Collective& collective, const RankPlacement& placement);
// The largest error of closed forms, corrected as above, as a fraction (tests/unit/planner/test_plan_cost).
double model_error(const Collective& collective, const RankPlacement& placement);

class PlanPricer {
 public:
  static constexpr double kMostSteps = 30'000;    // limit of a simulation if the closed form is exact; about 30 ms
  static constexpr double kMostUnsure = 200'000;  // limit of a simulation otherwise
  static constexpr double kAllSteps = 2'000'000;  // limit of all simulations together; the first requests use it up

  PlanPricer(const Network& network, int ranks_a_host, double all_steps = kAllSteps)
      : network_(network), ranks_a_host_(ranks_a_host), steps_left_(all_steps) {}

  const Network& network() const { return network_; }
  int ranks_a_host() const { return ranks_a_host_; }
  // Results are cached: a second call with the same arguments costs O(log calls).
  CollectiveCost cost(const Collective& collective, int ranks);
  // Resets all_simulated() and error().
  void begin() { all_simulated_ = true, error_ = 0; }
  // Records that a part of the exchange was not simulated, and that it may be wrong by this fraction of the exchange.
  void note_formula(double error) { all_simulated_ = false, error_ = std::max(error_, error); }
  // Calls find() once for this key, and returns its result.
  double once(const std::string& key, const std::function<double()>& find);
  // Whether all results since begin() came from simulations.
  bool all_simulated() const { return all_simulated_; }
  // The largest error of the results since begin() that did not come from simulations.
  double error() const { return error_; }

 private:
  using Key = std::tuple<std::string, std::int64_t, double, int>;
  double simulated(const Collective& collective, int ranks);
  double corrected_s(const Collective& collective, int ranks, double closed_s);
  double closed_s(const Collective& collective, int ranks) const;
  bool may_simulate(const Collective& collective, int ranks);

  Network network_;
  int ranks_a_host_;
  double steps_left_;
  struct Known {
    CollectiveCost cost;
    bool simulated = false;
  };
  std::map<Key, Known> known_;
  std::map<Key, double> simulated_;
  std::map<std::string, double> found_;  // the results of once()
  bool all_simulated_ = true;
  double error_ = 0;
};

}  // namespace echelon::inline planner
