// The time that the plans of all ranks take on a modelled network: they run on a virtual clock, nothing is sent. What
// `algorithm = "auto"` chooses by.
//
// A message starts once its send and its receive may both start and both network cards are free, and arrives latency_s
// + bytes / bytes_per_s later. A card sends one message at a time and receives one at a time; it is busy for bytes /
// bytes_per_s and half the latency. Ranks of one host share its card towards other hosts; among themselves each has its
// own. Adding takes the rank bytes / add_bytes_per_s. (Hockney's alpha-beta model, with contention where ports are
// shared.)
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
};

// Seconds until the last rank is done. plans[r] is rank r's; hosts[r] its host (Transport::hosts). Windows and the
// budget of sends are not modelled. O(steps log steps) over all ranks, in time and memory. A failed check for plans of
// the library, which cannot be priced, and for plans that do not match each other or wait for each other.
double plan_time_s(const std::vector<std::shared_ptr<const Plan>>& plans, const std::vector<int>& hosts,
                   const Network& network, std::size_t elem_bytes);

}  // namespace echelon::inline comm
