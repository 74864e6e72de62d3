// SPDX-License-Identifier: Apache-2.0
// An asynchronous parameter server on virtual time: schedules of workers, servers, rules, speeds and delays, drawn from
// a seed, and the outcome of running one.
#pragma once

#include <string>
#include <vector>

#include "comm/disturbed.hpp"
#include "comm/virtual/world.hpp"
#include "tests/support/async_observer.hpp"

namespace echelon::test {

struct AsyncSchedule {
  int workers = 1, ranks = 1;
  AsyncRules rules;
  std::vector<Parts> parts;                      // one entry per bucket
  std::vector<std::vector<std::int64_t>> steps;  // by worker and epoch; a meeting follows each epoch but the last
  // Timing.
  double compute_s = 100e-6;             // mean time of a worker's step
  double spread = 1;                     // a step takes uniformly compute_s * [1 - spread / 2, 1 + spread / 2]
  std::vector<double> slowness;          // factor of the step time, one per worker
  int sends = 8;                         // most sends that a rank may have in flight
  std::vector<Disturbance> disturbance;  // one per rank
  VirtualNetwork network;
};

// Draws any schedule that the protocol permits; the same seed gives the same schedule.
AsyncSchedule draw_async_schedule(std::uint64_t seed);
// Draws other speeds, delays, stops and orders for the same work.
void draw_async_timing(AsyncSchedule& schedule, std::uint64_t seed);
// Equal workers, one bucket, and one server on a rank of its own.
AsyncSchedule equal_workers(int workers, std::int64_t steps, const AsyncRules& rules);

struct AsyncOutcome {
  std::vector<std::vector<LedgerBytes>> ledgers;  // by rank and bucket
  std::vector<Integers> weights;                  // final weights of each bucket, from its servers
  std::vector<std::vector<Integers>> pulled;      // by worker: the versions it pulled, a row for each piece
  std::vector<StalenessTally> staleness;          // one per worker
  std::vector<double> last_push_s;                // one per worker: when its last push was answered
  std::int64_t lead = 0;                          // AsyncObserver::lead()

  StalenessTally all() const;
};

inline int async_tag(int bucket) { return 20 + 2 * bucket; }
// `recorded` holds the ledgers of this rank, one per bucket; it is empty where nothing was recorded.
std::vector<AsyncBucket> buckets_of(const AsyncSchedule& schedule, const std::vector<LedgerBytes>& recorded);
// Collects the outcome of machines that have ended, given by rank; leaves last_push_s empty. Checks fail as below.
AsyncOutcome outcome_of(const AsyncSchedule& schedule, AsyncObserver& observer,
                        const std::vector<const AsyncProtocol*>& protocols);

// Runs the schedule to its end, in the order of `recorded` (by rank and bucket) if that is given. Fails a check or
// throws EnvironmentError where anything violates the definitions or a rank does not end.
AsyncOutcome run_async(const AsyncSchedule& schedule, const std::vector<std::vector<LedgerBytes>>& recorded = {});

}  // namespace echelon::test
