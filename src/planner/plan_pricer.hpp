// The time of an all-reduce for any number of ranks: its very plans on virtual time while these are few steps, else the
// closed form (plan_cost.hpp), where it is not exact with the error that it has for fewer ranks, where both run:
//
//   T(k) = closed(k) + sim(k0) - closed(k0)            the same buffer: halving_doubling, butterfly
//   T(k) = closed(k) sim(k0) / closed(k0)              a buffer of k0 / k: parts of one size on every rank
//   T(k) = closed(k) + e(k0) + (l - l0)(e(k0) - e(k0 / 2))   tree, binomial: e = sim - closed by levels l = log2 k
//
// k0 is 32, or 24 where k is no power of two. model_error() says how far that may be from the plans. Only cards that
// always have one message to send have a closed form within 1 %: where several wait for one card, which goes first
// decides, and a single element more in the buffer may turn that over. Plans of libraries (mpi, nccl) have no steps and
// are not simulated.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <tuple>

#include "comm/collective/algorithms.hpp"
#include "planner/plan_cost.hpp"

namespace echelon::inline planner {

// Of rank 0; hosts are left out.
AllreduceRequest request_of(const Collective& collective, int ranks);
// Seconds of the plans of all ranks on virtual time. ConfigError for algorithms without plans (mpi, nccl).
double simulated_s(const Collective& collective, const RankPlacement& placement, const Network& network);
// Steps of the plans on all ranks together, estimated; infinity where there are none.
double plan_steps(const Collective& collective, const RankPlacement& placement);
// How far closed forms, corrected as above, may be from the plans, as a fraction (tests/unit/planner/test_plan_cost).
double model_error(const Collective& collective, const RankPlacement& placement);

class PlanPricer {
 public:
  static constexpr double kMostSteps = 30'000;    // that are simulated where a closed form is exact: some 30 ms
  static constexpr double kMostUnsure = 200'000;  // and elsewhere
  static constexpr double kAllSteps = 2'000'000;  // of all simulations: what is asked for first is simulated

  PlanPricer(const Network& network, int ranks_a_host, double all_steps = kAllSteps)
      : network_(network), ranks_a_host_(ranks_a_host), steps_left_(all_steps) {}

  const Network& network() const { return network_; }
  int ranks_a_host() const { return ranks_a_host_; }
  // Results are kept: the second call with the same arguments costs O(log calls).
  CollectiveCost cost(const Collective& collective, int ranks);
  // Forgets what all_simulated() and error() are about.
  void begin() { all_simulated_ = true, error_ = 0; }
  // Something else was not simulated, and may be wrong by this fraction of the exchange.
  void note_formula(double error) { all_simulated_ = false, error_ = std::max(error_, error); }
  // find() at the first call with this key.
  double once(const std::string& key, const std::function<double()>& find);
  // Whether all that was asked for since came from simulations alone.
  bool all_simulated() const { return all_simulated_; }
  // The largest error of those that did not.
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
  std::map<std::string, double> found_;  // by once()
  bool all_simulated_ = true;
  double error_ = 0;
};

}  // namespace echelon::inline planner
