// The time that the plans of all ranks take on a modelled network: they run on a virtual clock, nothing is sent. What
// `algorithm = "auto"` chooses by.
//
// A message leaves once its send and its receive may both start and the sender's network card is free, and arrives
// latency_s + bytes / bytes_per_s later, or when the receiver's card has taken those before it; between cards a switch
// buffers any number. A card sends one message at a time and receives one at a time; each keeps it busy for bytes /
// bytes_per_s and half the latency. Ranks of one host share its card towards other hosts; among themselves each has its
// own. Between hosts of two switches a message also passes an uplink of each, which takes one message at a time in each
// direction. Adding takes the rank bytes / add_bytes_per_s. (Hockney's alpha-beta model, with contention where ports
// are shared.)
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
  double uplink_bytes_per_s = 1e9;  // of a switch, each direction, where there are several
};

// A collective among others on the same ranks.
struct TimedPlans {
  std::vector<std::shared_ptr<const Plan>> plans;  // by rank
  std::vector<double> ready_s = {};                // by rank: when it may begin; empty: 0
};

// Seconds until the last rank is done. plans[r] is rank r's; hosts[r] its host (Transport::hosts). Windows and the
// budget of sends are not modelled. O(steps log steps) over all ranks, in time and memory. A failed check for plans of
// the library, which cannot be priced, and for plans that do not match each other or wait for each other.
double plan_time_s(const std::vector<std::shared_ptr<const Plan>>& plans, const std::vector<int>& hosts,
                   const Network& network, std::size_t elem_bytes);

// Likewise of several collectives that share cards and ranks: by collective, when its last rank is done. Messages take
// a card in the order in which both their ends are ready; priorities are not modelled. `elem_bytes`: of a message.
std::vector<double> plan_times_s(const std::vector<TimedPlans>& collectives, const std::vector<int>& hosts,
                                 const Network& network, double elem_bytes);

}  // namespace echelon::inline comm
