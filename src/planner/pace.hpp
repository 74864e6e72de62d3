// How fast replicas go that wait for some of the others now and then: rounds on virtual time, drawn from the variation
// of their steps, repeatable. Factors over the mean step; 1 where steps do not vary.
#pragma once

#include <cstdint>
#include <vector>

#include "config/strategies/gossip.hpp"
#include "planner/variation.hpp"

namespace echelon::inline planner {

// Factors of the first `steps` steps of one of the replicas, those that the functions below draw.
std::vector<double> drawn_factors(const Variation& variation, int replicas, int replica, int steps);

// Nobody is more than `bound` steps ahead of the slowest: step t begins once its own step before and step t - 1 - bound
// of all replicas have ended (Ho et al. 2013). O(replicas x rounds).
double bounded_pace(const Variation& variation, int replicas, std::int64_t bound);

// After each step a replica waits for those that send to it in that round (exchange/gossip/topology.hpp), every
// keys.consensus_every steps for all. Delays are taken to spread over random graphs as over exponential ones.
double neighbour_pace(const Variation& variation, int replicas, const GossipKeys& keys);

}  // namespace echelon::inline planner
