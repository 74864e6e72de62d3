// The time of an all-reduce for any number of ranks: its very plans on virtual time where these are few steps, else the
// closed form (plan_cost.hpp) with the error that it has for fewer ranks, where both are computed:
//
//   T(k) = closed(k) + sim(k0) - closed(k0)            the same buffer: halving_doubling, butterfly
//   T(k) = closed(k) sim(k0) / closed(k0)              a buffer of k0 / k: parts of one size on every rank
//   T(k) = closed(k) + e(k0) + (l - l0)(e(k0) - e(k0 / 2))   tree, binomial: e = sim - closed by levels l = log2 k
//
// k0 is 32, or 24 where k is no power of two. Against simulations of 64 to 100 ranks: 1 % for ring, naive, direct, and
// for powers of two halving_doubling and butterfly; 6 % for tree and server, 8 % for binomial and other numbers of
// ranks. Plans of libraries (mpi, nccl) have no steps and are not simulated.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tuple>

#include "comm/collective/algorithms.hpp"
#include "predictor/plan_cost.hpp"

namespace echelon::inline predictor {

// Of rank 0; hosts are left out.
AllreduceRequest request_of(const Collective& collective, int ranks);
// Seconds of the plans of all ranks on virtual time. ConfigError for algorithms without plans (mpi, nccl).
double simulated_s(const Collective& collective, const RankPlacement& placement, const Network& network);
// Whether there are plans, of at most `most` steps on all ranks together (estimated).
bool can_simulate(const Collective& collective, const RankPlacement& placement, double most);

class PlanPricer {
 public:
  static constexpr double kMostSteps = 30000;  // that are simulated: some 30 ms

  PlanPricer(const Network& network, int ranks_a_host, double most_steps = kMostSteps)
      : network_(network), ranks_a_host_(ranks_a_host), most_steps_(most_steps) {}

  const Network& network() const { return network_; }
  int ranks_a_host() const { return ranks_a_host_; }
  // Results are kept: the second call with the same arguments costs O(log calls).
  CollectiveCost cost(const Collective& collective, int ranks);
  // Forgets what all_simulated() is about.
  void begin() { all_simulated_ = true; }
  // Something else was not simulated.
  void note_formula() { all_simulated_ = false; }
  // find() at the first call with this key.
  double once(const std::string& key, const std::function<double()>& find);
  // Whether all that was asked for since came from simulations alone.
  bool all_simulated() const { return all_simulated_; }

 private:
  using Key = std::tuple<std::string, std::int64_t, double, int>;
  double simulated(const Collective& collective, int ranks);
  double corrected_s(const Collective& collective, int ranks, double closed_s);
  double closed_s(const Collective& collective, int ranks) const;

  Network network_;
  int ranks_a_host_;
  double most_steps_;
  struct Known {
    CollectiveCost cost;
    bool simulated = false;
  };
  std::map<Key, Known> known_;
  std::map<Key, double> simulated_;
  std::map<std::string, double> found_;  // by once()
  bool all_simulated_ = true;
};

}  // namespace echelon::inline predictor
