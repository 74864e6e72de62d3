// Which replica sees which sample at which step: a pure function, table-tested, of plain numbers.
//
//   plan.ids(epoch, step, replica) -> sample ids
//
// Sharding
//   file        each replica owns whole files, balanced by sample count (longest first to the lightest); with fewer
//   files than
//               replicas the files are cut into equal runs among the replicas that share them
//   record      one global order; step t holds the same ids for every number of replicas, dealt out in `shares`
//   replicated  every replica goes through everything in an order of its own
//   automatic   file where files >= replicas, else record
//
// Shuffling permutes chunks (`chunk_rows` records that lie together), then records inside a window of chunks, so that
// reading stays sequential within a window. The order is a hash of (seed, epoch, [replica]).
//
// All replicas take the same number of steps. A ragged end: `wrap` starts over from the replica's first samples
// (repeats are counted), `drop` leaves the remainder out, `zero_weight` fills up with samples of weight 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon {

struct ShardPlanRequest {
  std::vector<std::int64_t> file_samples;
  std::vector<std::int64_t> file_chunk_rows;  // by file; records read together
  std::vector<std::int64_t> batch;            // samples a step, by replica (its size is k)
  Sharding sharding = Sharding::automatic;
  Ragged ragged = Ragged::wrap;
  bool shuffle = true;
  std::uint64_t seed = 1;
  std::int64_t window_chunks = 16;  // chunks whose records are mixed
};

struct SampleSlot {
  std::int64_t id = 0;  // global
  bool counts = true;   // false: weight 0
};

class ShardPlan {
 public:
  // Throws ConfigError where a replica would have no sample, with the numbers.
  explicit ShardPlan(ShardPlanRequest request);

  int replicas() const { return static_cast<int>(request_.batch.size()); }
  Sharding sharding() const { return sharding_; }  // never automatic
  std::int64_t samples() const { return samples_; }
  std::int64_t steps_per_epoch() const { return steps_; }
  std::int64_t batch(int replica) const { return request_.batch[static_cast<std::size_t>(replica)]; }
  // Samples that this replica owns (of an epoch, before wrapping).
  std::int64_t owned(int replica) const;
  // Runs of global ids [first, first + count) that the replica owns: the files and parts of files, for `data inspect`.
  struct Run {
    int file = 0;
    std::int64_t first = 0;  // inside the file
    std::int64_t count = 0;
  };
  std::vector<Run> runs(int replica) const;

  // Exactly batch(replica) slots.
  std::vector<SampleSlot> ids(std::int64_t epoch, std::int64_t step, int replica) const;
  // Sum over replicas of the slots that count, at this step: W.
  double weight(std::int64_t epoch, std::int64_t step) const;
  double weight(std::int64_t epoch, std::int64_t step, int replica) const;

  // How often samples come in an epoch: seen 0 times, once, twice or more.
  struct Coverage {
    std::int64_t never = 0, once = 0, more = 0;
  };
  Coverage coverage(std::int64_t epoch) const;

 private:
  std::int64_t position_to_id(std::int64_t epoch, int replica, std::int64_t position) const;

  ShardPlanRequest request_;
  Sharding sharding_ = Sharding::record;
  std::int64_t samples_ = 0;
  std::int64_t steps_ = 0;
  struct Order;
  std::vector<std::vector<Run>> owned_runs_;  // by replica; one entry for `record` and `replicated`
};

}  // namespace echelon
