// An asynchronous parameter server on virtual time: schedules of workers, servers, rules, speeds and delays, drawn by
// seed, and what came of one.
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
  std::vector<Parts> parts;                      // by bucket
  std::vector<std::vector<std::int64_t>> steps;  // by worker and epoch; a meeting after each epoch but the last
  // Timing.
  double compute_s = 100e-6;             // of a step of a worker
  double spread = 1;                     // of that time: uniform in compute_s * [1 - spread / 2, 1 + spread / 2]
  std::vector<double> slowness;          // by worker
  int sends = 8;                         // budget of sends under way, by rank
  std::vector<Disturbance> disturbance;  // by rank
  VirtualNetwork network;
};

// Anything that the protocol permits; the same for the same seed.
AsyncSchedule draw_async_schedule(std::uint64_t seed);
// Other speeds, delays, stops and orders for the same work.
void draw_async_timing(AsyncSchedule& schedule, std::uint64_t seed);
// Equal workers, one bucket, one server on a rank of its own.
AsyncSchedule equal_workers(int workers, std::int64_t steps, const AsyncRules& rules);

struct AsyncOutcome {
  std::vector<std::vector<LedgerBytes>> ledgers;  // by rank and bucket
  std::vector<Integers> weights;                  // by bucket, at the end, from its servers
  std::vector<std::vector<Integers>> pulled;      // by worker: versions, a row for each piece
  std::vector<StalenessTally> staleness;          // by worker
  std::vector<double> last_push_s;                // by worker: when its last push was answered
  std::int64_t lead = 0;                          // AsyncObserver

  StalenessTally all() const;
};

inline int async_tag(int bucket) { return 20 + 2 * bucket; }
// `recorded`: of this rank, by bucket; empty: none.
std::vector<AsyncBucket> buckets_of(const AsyncSchedule& schedule, const std::vector<LedgerBytes>& recorded);
// Of machines that have ended, by rank; last_push_s is left empty. Failed checks as below.
AsyncOutcome outcome_of(const AsyncSchedule& schedule, AsyncObserver& observer,
                        const std::vector<const AsyncProtocol*>& protocols);

// Runs it to its end, in the order of `recorded` (by rank and bucket) where that is given. A failed check or
// EnvironmentError where anything is against the definitions, or somebody does not end.
AsyncOutcome run_async(const AsyncSchedule& schedule, const std::vector<std::vector<LedgerBytes>>& recorded = {});

}  // namespace echelon::test
