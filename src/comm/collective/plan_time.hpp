// SPDX-License-Identifier: Apache-2.0
// Computes the time that the plans of all ranks take on a modelled network: they run on a virtual clock, and nothing is
// sent. `algorithm = "auto"` chooses by this time.
//
// A message leaves once its send and its receive may both start and the sender's network card is free. It arrives
// latency_s + bytes / bytes_per_s later, or when the receiver's card has taken the messages before it; the switch
// between cards buffers any number. A card sends one message at a time and receives one at a time; each keeps it busy
// for bytes / bytes_per_s and half the latency. Ranks of one host share its card towards other hosts; among themselves
// each has its own. Between hosts of two switches a message also passes an uplink of each, which takes one message at a
// time in each direction. Adding takes the rank bytes / add_bytes_per_s. (Hockney's alpha-beta model, with contention
// where ports are shared.)
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/collective/plan.hpp"

namespace echelon::inline comm {

struct Link {
  double latency_s = 0;
  double bytes_per_s = 1e9;
};

struct Network {
  Link inside;   // between ranks of one host
  Link between;  // between hosts
  double add_bytes_per_s = 1e10;
  int hosts_per_switch = 0;         // 0: all hosts are on one switch
  double uplink_bytes_per_s = 1e9;  // rate of a switch's uplink in each direction, if there are several switches
};

// One collective among others on the same ranks.
struct TimedPlans {
  std::vector<std::shared_ptr<const Plan>> plans;  // by rank
  std::vector<double> ready_s = {};                // by rank: when its plan may begin; empty: 0
};

// Returns the seconds until the last rank is done. plans[r] is the plan of rank r and hosts[r] its host
// (Transport::hosts). Windows and the budget of sends are not modelled. O(steps log steps) over all ranks, in time and
// memory. A check fails for plans that use the library, whose time is not known, and for plans that do not match each
// other or that deadlock.
double plan_time_s(const std::vector<std::shared_ptr<const Plan>>& plans, const std::vector<int>& hosts,
                   const Network& network, std::size_t elem_bytes);

// The same for several collectives that share cards and ranks: returns for each the time at which its last rank is
// done. Messages take a card in the order in which both their ends are ready; priorities are not modelled. `elem_bytes`
// is the size of an element in a message.
std::vector<double> plan_times_s(const std::vector<TimedPlans>& collectives, const std::vector<int>& hosts,
                                 const Network& network, double elem_bytes);

}  // namespace echelon::inline comm
