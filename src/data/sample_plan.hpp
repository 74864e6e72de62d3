// Which replica sees which sample at which step: a pure function, table-tested, of plain numbers.
//
//   plan.ids(epoch, step, replica) -> sample ids
//
// Sharding
//   file        each replica owns whole files, balanced by samples per share of the batch (longest file first, to the
//               replica that would be through first); with fewer files than replicas the files in a row are cut into
//               runs in proportion to the shares
//   record      one global order; step t holds the same ids for every number of replicas, dealt out by `batch`; every
//               replica reads nearly every chunk when shuffled, k times what `file` reads
//   replicated  every replica goes through everything in an order of its own; an epoch is k passes
//   automatic   file where files >= replicas, else record
//
// Shuffling permutes chunks (`chunk_rows` records that lie together), then records inside a window of chunks, so that
// reading stays sequential within a window. The order is a hash of (seed, epoch, [replica]).
//
// Orders of their own, both for `record`, with the same ids for every number of replicas:
//   stream      a text: row s of the global batch reads windows s*steps, s*steps + 1, .. one a step, so that a state
//               that is carried from step to step goes on where its row was
//   buckets     sequences of like length share a step (bucket_steps.hpp); length(step) is what they are padded to
//
// All replicas take the same number of steps: what the slowest needs (`wrap`, `zero_weight`) or what all can fill
// (`drop`). A ragged end: `wrap` starts over from the replica's first samples of the epoch (repeats are counted),
// `drop` leaves the remainder out, `zero_weight` fills up with samples of weight 0.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/schema.hpp"
#include "data/bucket_steps.hpp"

namespace echelon::inline data {

struct SamplePlanRequest {
  std::vector<std::int64_t> file_samples;
  std::vector<std::int64_t> file_chunk_rows;  // by file; records read together
  std::vector<std::int64_t> batch;            // samples a step, by replica (its size is k)
  Sharding sharding = Sharding::automatic;
  Ragged ragged = Ragged::wrap;
  bool shuffle = true;
  std::uint64_t seed = 1;
  std::int64_t window_chunks = 16;  // chunks whose records are mixed
  bool stream = false;

  // Sequences of unlike length, by id; shared, because there are many.
  using ById = std::shared_ptr<const std::vector<std::int32_t>>;
  ById lengths;                       // what `buckets` are chosen by
  std::vector<std::int64_t> buckets;  // greatest length of each, rising; empty: none
  ById weights;                       // labels of a sample that count
  std::int64_t weight = 1;            // the same where all have as many
};

struct Dataset;
class SampleOrder;
struct PlanOrders;

// The request of a run: `window_chunks` is what the config says, less where such a window is larger than `buffer_mb`
// (else chunks would be read more than once).
SamplePlanRequest plan_request(const Dataset& dataset, const DataConfig& config, std::vector<std::int64_t> batch,
                               std::uint64_t seed);

class SamplePlan {
 public:
  // Throws ConfigError where a replica would have no sample or `drop` leave no step, with the numbers.
  explicit SamplePlan(SamplePlanRequest request);

  int replicas() const { return static_cast<int>(request_.batch.size()); }
  Sharding sharding() const { return sharding_; }  // never automatic
  std::int64_t samples() const { return samples_; }
  std::int64_t steps_per_epoch() const { return steps_; }
  std::int64_t batch(int replica) const { return request_.batch[static_cast<std::size_t>(replica)]; }
  std::int64_t global_batch() const { return global_batch_; }
  // Where the replica's rows of the global batch begin.
  std::int64_t row_of(int replica) const;
  // Samples that this replica owns (of an epoch, before wrapping).
  std::int64_t owned(int replica) const;
  // Runs of records that the replica owns, in file order: files and parts of files. All of them for `record` and
  // `replicated`.
  struct Run {
    int file = 0;
    std::int64_t first = 0;  // inside the file
    std::int64_t count = 0;
  };
  std::vector<Run> runs(int replica) const;

  // Exactly batch(replica) slots. Any thread; the order of the last epochs asked for is kept, O(chunks) memory.
  std::vector<SampleSlot> ids(std::int64_t epoch, std::int64_t step, int replica) const;
  // The lists of all replicas one after another: what one replica that stands for k takes (`data.as_replicas`).
  std::vector<SampleSlot> all_ids(std::int64_t epoch, std::int64_t step) const;
  // Sum over replicas of the labels that count, at this step: W. One a sample, or as many as it has tokens.
  double weight(std::int64_t epoch, std::int64_t step) const;
  double weight(std::int64_t epoch, std::int64_t step, int replica) const;
  // Samples that count, at this step, over all replicas, and of one.
  std::int64_t counting(std::int64_t epoch, std::int64_t step) const;
  std::int64_t counting(std::int64_t epoch, std::int64_t step, int replica) const;
  // What the sequences of this step are padded to; 0: no buckets.
  std::int64_t length(std::int64_t epoch, std::int64_t step) const;
  const std::vector<std::int64_t>& buckets() const { return request_.buckets; }
  bool stream() const { return request_.stream; }

  // How often samples come in an epoch: seen 0 times, once, twice or more.
  struct Coverage {
    std::int64_t never = 0, once = 0, more = 0;
  };
  Coverage coverage(std::int64_t epoch) const;

 private:
  // A replica's place in the order it draws from: slots of a step are positions first, first + 1, ... of `total`.
  struct Span {
    int stream = 0;
    std::int64_t first = 0;
    std::int64_t total = 0;
  };
  Span span(std::int64_t step, int replica) const;
  std::int64_t stream_samples(int stream) const;
  void count_steps();
  SampleOrder make_order(std::int64_t epoch, int stream) const;
  const LengthBucketSteps& bucket_steps(std::int64_t epoch) const;
  SampleSlot slot(std::int64_t position) const;  // of a stream

  SamplePlanRequest request_;
  Sharding sharding_ = Sharding::record;
  std::int64_t samples_ = 0;
  std::int64_t global_batch_ = 0;
  std::int64_t steps_ = 0;
  std::vector<std::vector<Run>> runs_;  // by stream: one a replica (file), or a single one (record, replicated)
  std::shared_ptr<PlanOrders> orders_;  // shared by copies; holds nothing that is not computed from the request
};

}  // namespace echelon::inline data
