// SPDX-License-Identifier: Apache-2.0
// The pace of replicas that wait for some of the others now and then: rounds are simulated on virtual time, with
// repeatable draws of the variation of their steps. Results are multiples of the mean step, 1 if steps do not vary.
#pragma once

#include <cstdint>
#include <vector>

#include "config/strategies/gossip.hpp"
#include "planner/variation.hpp"

namespace echelon::inline planner {

// Returns the factors of the first `steps` steps of one replica, as the functions below draw them.
std::vector<double> drawn_factors(const Variation& variation, int replicas, int replica, int steps);

// No replica is more than `bound` steps ahead of the slowest: step t begins once the replica's own step before and step
// t - 1 - bound of all replicas have ended (Ho et al. 2013). O(replicas x rounds).
double bounded_pace(const Variation& variation, int replicas, std::int64_t bound);

// After each step a replica waits for the replicas that send to it in that round (exchange/gossip/topology.hpp), and
// every keys.consensus_every steps for all. Random graphs are assumed to spread delays as exponential ones do.
double neighbour_pace(const Variation& variation, int replicas, const GossipKeys& keys);

}  // namespace echelon::inline planner
