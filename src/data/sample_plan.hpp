// SPDX-License-Identifier: Apache-2.0
// Decides which samples each replica takes in each step. A pure function of plain numbers.
//
//   plan.ids(epoch, step, replica) -> sample ids
//
// Sharding
//   file        each replica owns whole files, balanced by samples per batch (file_shares.hpp). With fewer files than
//               replicas, the concatenation of the files is cut into runs in proportion to the batches
//   record      one global order: step t has the same ids for every number of replicas, divided by `batch`. With
//               shuffling every replica reads nearly every chunk, k times as much as with `file`
//   node        files are assigned to nodes as `file` assigns them to replicas. Each replica reads all samples of its
//               node in an order of its own; an epoch is as many passes over the data as a node has replicas
//   replicated  every replica reads all samples in an order of its own; an epoch is k passes over the data
//   automatic   record if there are fewer files than replicas, if files are so uneven that an epoch would take more
//               than 1.05 times the steps, or if classes would differ between replicas; else file
//
// Shuffling permutes chunks, then the records within a window of chunks (sample_order.hpp). The order is a hash of
// (seed, epoch, [replica]).
//
// Special orders, both for `record`, with the same ids for every number of replicas:
//   stream      for a text: row s of the global batch reads windows s*steps, s*steps + 1, .., one per step, so that
//               recurrent states can be kept from step to step
//   stream of series   each row reads whole series, window by window (series_rows.hpp)
//   buckets     sequences of similar length share a step (bucket_steps.hpp), padded to length(step)
//
// A warm-up with few replicas (only `record`): in the first steps of an epoch the first n replicas share the samples,
// each taking its usual batch, and the others take none; the epoch then has more steps. All other steps are as above,
// so that an epoch still has each sample once.
//
// A part of the data (`fraction`): the first records of each file in a permutation by the seed, so that a smaller part
// is contained in a larger one and does not depend on the number of replicas; for a stream its beginning. Everything
// below then refers to the records that are kept, except for ids, which are those of the data set.
//
// All replicas take the same number of steps: as many as the replica with the most work needs (`wrap`, `zero_weight`),
// or as many as all can fill (`drop`). In an incomplete last step `wrap` repeats the replica's first samples of the
// epoch with full weight, `drop` leaves out the remaining samples, and `zero_weight` fills up with samples of weight 0.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/schema.hpp"
#include "data/bucket_steps.hpp"

namespace echelon::inline data {

struct WarmUp {
  std::int64_t replicas = 0;  // replicas that take samples; 0 or all: no warm-up
  std::int64_t steps = 0;     // length in steps; 0: given in epochs
  double epochs = 0;
  bool each_epoch = false;  // at the start of each epoch; false: only of the run, over several epochs if it is longer
};

// Returns how many of the `samples` of a file or stream are kept.
std::int64_t kept_of(std::int64_t samples, double fraction);

struct Dataset;
class LabelSample;

struct SamplePlanRequest {
  std::vector<std::int64_t> file_samples;
  std::vector<std::int64_t> file_chunk_rows;  // [file] records per chunk
  std::vector<std::int64_t> batch;            // [replica] samples per step; k entries
  std::vector<int> nodes{};                   // [replica] number of its node (for `node`); empty: all on one
  Sharding sharding = Sharding::automatic;
  Ragged ragged = Ragged::wrap;
  bool shuffle = true;
  std::uint64_t seed = 1;
  std::int64_t window_chunks = 16;  // chunks whose records are shuffled together
  double fraction = 1;              // fraction of the samples to use
  bool stream = false;
  std::shared_ptr<const std::vector<std::int64_t>> series = {};  // Dataset::series; null: a stream is one text
  WarmUp warmup = {};
  bool queue = false;  // batches are drawn (draw_plan.hpp), so a replica may get no samples

  using ById = std::shared_ptr<const std::vector<std::int32_t>>;  // one entry per sample id, shared by copies
  ById lengths;                                                   // lengths of sequences; null without buckets
  std::vector<std::int64_t> buckets;                              // greatest length of each, increasing; empty: none
  std::shared_ptr<const LabelSample> label_sample = {};           // null: classes are assumed to be mixed
  ById weights;             // labels of a sample that count (tokens, steps); null: `weight` for all
  std::int64_t weight = 1;  // labels of every sample
};

class SampleOrder;
class SeriesRows;
struct PlanOrders;

// Makes the request for a data set and [data]. `batch`: by replica. `window_chunks` is that of the config or, if chunks
// are sorted by class, as many as mix equally well; it is limited to the chunks that fit into data.buffer_mb, so that
// none is read more than once. Throws ConfigError for data.buckets without sequences.
SamplePlanRequest plan_request(const Dataset& dataset, const DataConfig& config, std::vector<std::int64_t> batch,
                               std::uint64_t seed);

// Returns the number of samples of a data set that data.fraction keeps.
std::int64_t samples_used(const Dataset& dataset, const DataConfig& config);

class SamplePlan {
 public:
  // Throws ConfigError with the numbers if a replica would have no sample, or if `drop` would leave no step.
  explicit SamplePlan(SamplePlanRequest request);

  int replicas() const { return static_cast<int>(request_.batch.size()); }
  Sharding sharding() const { return sharding_; }  // never automatic
  // Whether several replicas read the same samples, each in an order of its own.
  bool rereads() const { return sharding_ == Sharding::node || sharding_ == Sharding::replicated; }
  std::int64_t samples() const { return samples_; }  // samples per epoch
  std::int64_t ids_end() const { return ids_end_; }  // all ids are below it: samples of the data set
  // Steps of an epoch without warm-up, or with it if every epoch begins with one.
  std::int64_t steps_per_epoch() const { return steps_; }
  std::int64_t steps_in(std::int64_t epoch) const;
  std::int64_t steps_before(std::int64_t epoch) const;  // sum over all earlier epochs; O(epochs with a warm-up)
  // Number of steps at the start of an epoch in which only the first replicas take samples; 0: none.
  std::int64_t warmup_steps(std::int64_t epoch) const;
  // Whether the replica has samples in this step.
  bool takes(std::int64_t epoch, std::int64_t step, int replica) const {
    return replica < warmup_replicas_ || step >= warmup_steps(epoch);
  }
  std::int64_t batch(int replica) const { return request_.batch[static_cast<std::size_t>(replica)]; }
  std::int64_t global_batch() const { return global_batch_; }
  // First row of the replica in the global batch.
  std::int64_t row_of(int replica) const { return rows_[static_cast<std::size_t>(replica)]; }
  // Samples of an epoch that this replica owns, not counting repeated ones.
  std::int64_t owned(int replica) const;
  // The runs of records that the replica reads, in file order: files and parts of files. All files for `record` and
  // `replicated`, those of its node for `node`.
  struct Run {
    int file = 0;
    std::int64_t first = 0;  // index within the file
    std::int64_t count = 0;
  };
  std::int64_t window_chunks() const { return request_.window_chunks; }
  // [share of the data]; `record` and `replicated` have a single share with all samples.
  const std::vector<std::vector<Run>>& all_runs() const { return runs_; }
  const std::vector<Run>& runs(int replica) const { return runs_[static_cast<std::size_t>(share_of(replica))]; }

  // Returns a plan with the same samples in every step, in other batches with the same sum. Only for `record`.
  SamplePlan with_batches(std::vector<std::int64_t> batch) const;

  // Returns batch(replica) slots in the order of the batch's rows; none if the replica takes no samples. `step` is in
  // [0, steps_in(epoch)). Thread-safe; caches the orders of two epochs in O(chunks) memory.
  std::vector<SampleSlot> ids(std::int64_t epoch, std::int64_t step, int replica) const;
  // Returns the slots of all replicas, concatenated, for one rank that computes all of them (data.as_replicas).
  std::vector<SampleSlot> all_ids(std::int64_t epoch, std::int64_t step) const;
  // Returns the ids at positions of an epoch's order of all records, only for `record`. Thread-safe.
  std::vector<std::int64_t> ids_at(std::int64_t epoch, const std::vector<std::int64_t>& positions) const;
  // Returns the number of labels of these samples that count.
  double weight_of(const std::vector<SampleSlot>& slots) const;
  // The same for a number of samples, if all samples have equally many labels.
  bool weighs_alike() const { return !request_.weights; }
  double weight_of_samples(std::int64_t count) const {
    return static_cast<double>(request_.weight) * static_cast<double>(count);
  }
  // W: the number of labels that count in this step, over all replicas, or of one. A sample has one label, or one per
  // token.
  double weight(std::int64_t epoch, std::int64_t step) const;
  double weight(std::int64_t epoch, std::int64_t step, int replica) const;
  // The number of samples that count in this step, over all replicas, or of one. O(1), except for buckets with
  // `zero_weight` (O(samples of the step)) and the last steps of replicas that have their own samples (O(replicas)).
  // Weights cost the same if all samples have equally many labels, else O(samples of the step).
  std::int64_t counting(std::int64_t epoch, std::int64_t step) const;
  std::int64_t counting(std::int64_t epoch, std::int64_t step, int replica) const;
  // The length to which the sequences of this step are padded; 0: no buckets.
  std::int64_t length(std::int64_t epoch, std::int64_t step) const;
  const std::vector<std::int64_t>& buckets() const { return request_.buckets; }
  bool stream() const { return request_.stream; }
  Ragged ragged() const { return request_.ragged; }

  // The number of samples that occur never, once, and more than once in an epoch. O(samples).
  struct Coverage {
    std::int64_t never = 0, once = 0, more = 0;
    int most = 0;  // occurrences of the most frequent sample; 255: or more
  };
  Coverage coverage(std::int64_t epoch) const;

 private:
  // The positions of a replica's step in the order of its stream: first, first + 1, .. of `total`. There is one stream
  // per replica, and several may have the same runs; `record` has a single one.
  struct Span {
    int stream = 0;
    std::int64_t first = 0;
    std::int64_t total = 0;
  };
  Span span(std::int64_t epoch, std::int64_t step, int replica) const;
  template <class Visit>
  void visit(std::int64_t epoch, std::int64_t step, int replica, std::int64_t rows, const Visit& visitor) const;
  std::int64_t steps_of(std::int64_t samples, std::int64_t batch) const;
  std::int64_t stream_samples(int replica) const;
  int share_of(int replica) const { return share_[static_cast<std::size_t>(replica)]; }
  Sharding choose_sharding() const;
  void keep_fraction();
  std::int64_t id_of(std::int64_t kept) const { return kept_ ? (*kept_)[static_cast<std::size_t>(kept)] : kept; }
  SampleSlot in_data(SampleSlot slot) const { return {.id = id_of(slot.id), .counts = slot.counts}; }
  void count_steps();
  void number_rows();
  SampleOrder make_order(std::int64_t epoch, int stream) const;
  const LengthBucketSteps& bucket_steps(std::int64_t epoch) const;
  const SeriesRows& series_rows(std::int64_t epoch) const;
  SampleSlot slot(std::int64_t position) const;  // at a position of a stream

  SamplePlanRequest request_;
  Sharding sharding_ = Sharding::record;
  std::int64_t samples_ = 0, ids_end_ = 0;
  std::vector<std::int64_t> data_first_;                   // [file] its first id; filled if `kept_` is
  std::shared_ptr<const std::vector<std::int64_t>> kept_;  // ids, increasing; null: all, or the first ones
  std::int64_t global_batch_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t full_steps_ = 0;  // steps of an epoch in which all replicas with samples of their own fill their batches
  std::vector<std::int64_t> rows_;      // [replica] its first row in the global batch
  int warmup_replicas_ = 0;             // 0: no warm-up
  std::int64_t warmup_batch_ = 0;       // samples of a warm-up step, over its replicas
  std::int64_t warmup_longest_ = 0;     // steps of an epoch that is entirely warm-up
  std::vector<std::vector<Run>> runs_;  // [share of the data]: one per replica, one per node, or a single one
  std::vector<int> share_;              // [replica]
  std::shared_ptr<PlanOrders> orders_;  // shared by copies; holds only values computed from the request
};

}  // namespace echelon::inline data
