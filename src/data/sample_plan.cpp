// SPDX-License-Identifier: Apache-2.0
#include "data/sample_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/numbered.hpp"
#include "base/text.hpp"
#include "data/class_mix.hpp"
#include "data/file_shares.hpp"
#include "data/plan_orders.hpp"

namespace echelon::inline data {
namespace {

using Run = SamplePlan::Run;

// Returns the runs of files that make up [begin, end) of the concatenation of all files.
std::vector<Run> runs_between(const std::vector<std::int64_t>& file_samples, std::int64_t begin, std::int64_t end) {
  std::vector<Run> runs;
  std::int64_t first = 0;  // global id of the file's first sample
  for (std::size_t file = 0; file < file_samples.size(); ++file) {
    const std::int64_t from = std::max(begin, first), to = std::min(end, first + file_samples[file]);
    if (from < to) runs.push_back({.file = static_cast<int>(file), .first = from - first, .count = to - from});
    first += file_samples[file];
  }
  return runs;
}

// Returns runs by share of the data, in proportion to `batch`.
std::vector<std::vector<Run>> runs_by_file(const SamplePlanRequest& request, const std::vector<std::int64_t>& batch,
                                           std::int64_t samples) {
  std::vector<std::vector<Run>> runs(batch.size());
  if (request.file_samples.size() >= batch.size()) {
    const std::vector<int> owner = deal_files(request.file_samples, batch);
    for (std::size_t file = 0; file < owner.size(); ++file)
      runs[static_cast<std::size_t>(owner[file])].push_back(
          {.file = static_cast<int>(file), .first = 0, .count = request.file_samples[file]});
    return runs;
  }
  const std::vector<std::int64_t> borders = cut_in_proportion(samples, batch);
  for (std::size_t r = 0; r < runs.size(); ++r)
    runs[r] = runs_between(request.file_samples, borders[r], borders[r + 1]);
  return runs;
}

std::int64_t total(const std::vector<Run>& runs) {
  std::int64_t sum = 0;
  for (const Run& run : runs) sum += run.count;
  return sum;
}

std::int64_t sum_of(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

// Returns for each replica the share of the data that it reads.
std::vector<int> shares(const SamplePlanRequest& request, Sharding sharding) {
  if (sharding == Sharding::node && !request.nodes.empty()) return numbered(request.nodes);
  std::vector<int> share(request.batch.size(), 0);
  if (sharding == Sharding::file) std::iota(share.begin(), share.end(), 0);
  return share;
}

// Checks the request; a violation is an internal error, not a user's mistake.
void check_request(const SamplePlanRequest& request) {
  ECHELON_CHECK(!request.batch.empty(), "a plan needs a replica");
  ECHELON_CHECK(!request.file_samples.empty(), "a plan needs a file");
  ECHELON_CHECK_EQ(request.file_samples.size(), request.file_chunk_rows.size(), "files and their chunks");
  ECHELON_CHECK_GE(*std::min_element(request.file_samples.begin(), request.file_samples.end()), 1, "an empty file");
  ECHELON_CHECK_GE(*std::min_element(request.file_chunk_rows.begin(), request.file_chunk_rows.end()), 1,
                   "a chunk holds at least one record");
  ECHELON_CHECK(request.nodes.empty() || request.nodes.size() == request.batch.size(), "nodes of {} replicas, not {}",
                request.nodes.size(), request.batch.size());
  ECHELON_CHECK_GE(*std::min_element(request.batch.begin(), request.batch.end()), 1, "an empty batch");
  if (request.warmup.replicas > 0)
    ECHELON_CHECK(!request.stream && request.buckets.empty() &&
                      (request.sharding == Sharding::automatic || request.sharding == Sharding::record),
                  "a warm-up deals samples by record");
}

}  // namespace

SamplePlan::SamplePlan(SamplePlanRequest request)
    : request_(std::move(request)), orders_(std::make_shared<PlanOrders>()) {
  check_request(request_);
  ids_end_ = sum_of(request_.file_samples);
  if (request_.fraction < 1) keep_fraction();
  samples_ = sum_of(request_.file_samples);
  number_rows();
  sharding_ = request_.sharding;
  if (request_.stream || !request_.buckets.empty() || request_.warmup.replicas > 0)
    sharding_ = Sharding::record;
  else if (sharding_ == Sharding::automatic)
    sharding_ = choose_sharding();
  if (samples_ < replicas() && !request_.queue)
    throw ConfigError(fmt::format("{} replicas need at least {} samples, but the data hold {}: start at most {}",
                                  replicas(), replicas(), count_text(samples_), counted(samples_, "rank")));
  share_ = shares(request_, sharding_);
  std::vector<std::int64_t> share_batch(static_cast<std::size_t>(*std::max_element(share_.begin(), share_.end())) + 1);
  for (int r = 0; r < replicas(); ++r) share_batch[static_cast<std::size_t>(share_of(r))] += batch(r);
  runs_ = runs_by_file(request_, share_batch, samples_);
  for (std::size_t i = 0; i < runs_.size(); ++i)
    if (runs_[i].empty())
      throw ConfigError(
          fmt::format("{} {} would have no sample: its share is {} of {}, and the data hold {}; use "
                      "data.sharding = \"record\" or more equal shares",
                      sharding_ == Sharding::node ? "node" : "replica", i, share_batch[i], global_batch_,
                      counted(samples_, "sample")));
  count_steps();
}

Sharding SamplePlan::choose_sharding() const {
  constexpr double kMostSteps = 1.05;
  if (request_.file_samples.size() < request_.batch.size()) return Sharding::record;
  const std::vector<std::vector<Run>> dealt = runs_by_file(request_, request_.batch, samples_);
  const bool drop = request_.ragged == Ragged::drop;
  std::int64_t by_file = 0;
  for (std::size_t r = 0; r < dealt.size(); ++r) {
    const std::int64_t own = steps_of(total(dealt[r]), request_.batch[r]);
    by_file = r == 0 ? own : drop ? std::min(by_file, own) : std::max(by_file, own);
  }
  const auto by_record = static_cast<double>(steps_of(samples_, global_batch_)), file = static_cast<double>(by_file);
  // One step more does not count, because the rest of an epoch never fills all batches.
  const bool uneven = drop ? file * kMostSteps + 1 < by_record : file > by_record * kMostSteps + 1;
  if (uneven) return Sharding::record;
  if (request_.label_sample && replica_mix(*request_.label_sample, dealt) > 0) return Sharding::record;
  return Sharding::file;
}

SamplePlan SamplePlan::with_batches(std::vector<std::int64_t> batch) const {
  ECHELON_CHECK(sharding_ == Sharding::record && !request_.stream && warmup_replicas_ == 0,
                "replicas have samples of their own");
  ECHELON_CHECK_EQ(sum_of(batch), global_batch_, "samples of a step");
  SamplePlan other = *this;
  other.request_.batch = std::move(batch);
  check_request(other.request_);
  other.number_rows();
  return other;
}

void SamplePlan::number_rows() {
  rows_.clear();
  global_batch_ = 0;
  for (const std::int64_t own : request_.batch) {
    rows_.push_back(global_batch_);
    global_batch_ += own;
  }
}

std::int64_t SamplePlan::stream_samples(int replica) const {
  return total(runs_[static_cast<std::size_t>(share_of(replica))]);
}

std::int64_t SamplePlan::steps_of(std::int64_t samples, std::int64_t batch) const {
  return request_.ragged == Ragged::drop ? samples / batch : (samples + batch - 1) / batch;
}

void SamplePlan::count_steps() {
  const bool drop = request_.ragged == Ragged::drop;
  const auto steps = [this](std::int64_t samples, std::int64_t batch) { return steps_of(samples, batch); };
  if (request_.series) {
    steps_ = series_rows(0).steps();
  } else if (!request_.buckets.empty()) {
    std::vector<std::int64_t> held(request_.buckets.size(), 0);
    for (const std::int32_t length : *request_.lengths)
      ++held[static_cast<std::size_t>(bucket_of(request_.buckets, length))];
    for (const std::int64_t samples : held) steps_ += steps(samples, global_batch_);
  } else if (sharding_ == Sharding::record) {
    const WarmUp& warmup = request_.warmup;
    if (warmup.replicas > 0 && warmup.replicas < replicas()) {
      warmup_replicas_ = static_cast<int>(warmup.replicas);
      warmup_batch_ = row_of(warmup_replicas_);
      warmup_longest_ = steps(samples_, warmup_batch_);
    }
    steps_ = steps(samples_, global_batch_);
    if (warmup.each_epoch) steps_ = steps_in(0);
  } else {
    for (int r = 0; r < replicas(); ++r) {
      const std::int64_t own = steps(stream_samples(r), batch(r)), full = stream_samples(r) / batch(r);
      steps_ = r == 0 ? own : drop ? std::min(steps_, own) : std::max(steps_, own);
      full_steps_ = r == 0 ? full : std::min(full_steps_, full);
    }
  }
  if (steps_ == 0)
    throw ConfigError(
        fmt::format("data.ragged = \"drop\" leaves no step: {} samples over {} replicas do not fill one batch of {}{}; "
                    "use a smaller batch.global or data.ragged = \"wrap\"",
                    count_text(samples_), replicas(), global_batch_, request_.buckets.empty() ? "" : " in any bucket"));
}

SamplePlan::Span SamplePlan::span(std::int64_t epoch, std::int64_t step, int replica) const {
  ECHELON_CHECK(step >= 0 && step < steps_in(epoch), "step {} of {} in epoch {}", step, steps_in(epoch), epoch);
  ECHELON_CHECK(replica >= 0 && replica < replicas(), "replica {} of {}", replica, replicas());
  if (sharding_ == Sharding::record) {
    const std::int64_t warm = std::min(step, warmup_steps(epoch));
    return {.stream = 0,
            .first = warm * warmup_batch_ + (step - warm) * global_batch_ + row_of(replica),
            .total = samples_};
  }
  return {.stream = replica, .first = step * batch(replica), .total = stream_samples(replica)};
}

// The order of a stream: its runs, divided at the chunk boundaries of their files. Ids are numbers of kept samples.
SampleOrder SamplePlan::make_order(std::int64_t epoch, int stream) const {
  std::vector<Piece> pieces;
  std::vector<std::int64_t> file_first{0};
  for (const std::int64_t samples : request_.file_samples) file_first.push_back(file_first.back() + samples);
  const std::vector<std::int64_t>& data_first = kept_ ? data_first_ : file_first;
  for (const Run& run : runs(stream)) {
    const auto file = static_cast<std::size_t>(run.file);
    const std::int64_t rows = request_.file_chunk_rows[file], end = run.first + run.count;
    const auto chunk_of = [&](std::int64_t at) { return (id_of(file_first[file] + at) - data_first[file]) / rows; };
    for (std::int64_t first = run.first; first < end;) {
      std::int64_t next = std::min(end, (first / rows + 1) * rows);
      if (kept_)
        for (next = first + 1; next < end && chunk_of(next) == chunk_of(first);) ++next;
      pieces.push_back({.first = file_first[file] + first, .count = next - first});
      first = next;
    }
  }
  const HashRng rng = HashRng(request_.seed, "shuffle").at(static_cast<std::uint64_t>(epoch));
  return SampleOrder(std::move(pieces), request_.shuffle, request_.window_chunks,
                     rng.at(static_cast<std::uint64_t>(stream)));
}

// The caller must hold the mutex of the orders.
const LengthBucketSteps& SamplePlan::bucket_steps(std::int64_t epoch) const {
  return orders_->buckets.get(epoch, [&] {
    SampleOrder order = make_order(epoch, 0);
    std::vector<std::int64_t> ids;
    ids.reserve(static_cast<std::size_t>(samples_));
    for (std::int64_t position = 0; position < samples_; ++position) ids.push_back(order.at(position));
    return LengthBucketSteps(ids, *request_.lengths, request_.buckets, global_batch_, request_.ragged);
  });
}

// The caller must hold the mutex of the orders, except before the plan is shared. Every epoch has as many steps.
const SeriesRows& SamplePlan::series_rows(std::int64_t epoch) const {
  return orders_->series.get(epoch, [&] {
    std::optional<HashRng> rng;
    if (request_.shuffle) rng = HashRng(request_.seed, "series").at(static_cast<std::uint64_t>(epoch));
    return SeriesRows(*request_.series, samples_, global_batch_, request_.ragged, rng);
  });
}

SampleSlot SamplePlan::slot(std::int64_t position) const {
  return {.id = position % samples_, .counts = position < samples_ || request_.ragged != Ragged::zero_weight};
}

std::vector<SampleSlot> SamplePlan::ids(std::int64_t epoch, std::int64_t step, int replica) const {
  std::vector<SampleSlot> slots;
  if (!takes(epoch, step, replica)) return slots;
  slots.reserve(static_cast<std::size_t>(batch(replica)));
  visit(epoch, step, replica, batch(replica), [&](const SampleSlot& slot) { slots.push_back(slot); });
  return slots;
}

// Visits the first `rows` of the replica's batch.
template <class Visit>
void SamplePlan::visit(std::int64_t epoch, std::int64_t step, int replica, std::int64_t rows,
                       const Visit& visitor) const {
  if (!takes(epoch, step, replica)) return;
  const Span at = span(epoch, step, replica);
  const std::int64_t first_row = row_of(replica), end_row = first_row + rows;
  if (request_.stream && !request_.series) {
    for (std::int64_t row = first_row; row < end_row; ++row) visitor(slot(row * steps_ + step));
    return;
  }
  const std::lock_guard lock(orders_->mutex);
  if (request_.series) {
    const SeriesRows& dealt = series_rows(epoch);
    for (std::int64_t row = first_row; row < end_row; ++row) visitor(dealt.at(step, row));
    return;
  }
  if (!request_.buckets.empty()) {
    const LengthBucketSteps& steps = bucket_steps(epoch);
    for (std::int64_t row = first_row; row < end_row; ++row) visitor(in_data(steps.at(step, row)));
    return;
  }
  SampleOrder& order = orders_->of_stream(at.stream).get(epoch, [&] { return make_order(epoch, at.stream); });
  for (std::int64_t position = at.first; position < at.first + rows; ++position)
    visitor(SampleSlot{.id = id_of(order.at(position % at.total)),
                       .counts = position < at.total || request_.ragged != Ragged::zero_weight});
}

std::int64_t SamplePlan::length(std::int64_t epoch, std::int64_t step) const {
  if (request_.buckets.empty()) return 0;
  const std::lock_guard lock(orders_->mutex);
  return request_.buckets[static_cast<std::size_t>(bucket_steps(epoch).bucket(step))];
}

std::vector<SampleSlot> SamplePlan::all_ids(std::int64_t epoch, std::int64_t step) const {
  std::vector<SampleSlot> all;
  all.reserve(static_cast<std::size_t>(global_batch_));
  for (int r = 0; r < replicas(); ++r) {
    const std::vector<SampleSlot> own = ids(epoch, step, r);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

std::vector<std::int64_t> SamplePlan::ids_at(std::int64_t epoch, const std::vector<std::int64_t>& positions) const {
  ECHELON_CHECK(sharding_ == Sharding::record, "replicas have orders of their own");
  const std::lock_guard lock(orders_->mutex);
  SampleOrder& order = orders_->of_stream(0).get(epoch, [&] { return make_order(epoch, 0); });
  std::vector<std::int64_t> ids;
  ids.reserve(positions.size());
  for (const std::int64_t position : positions) ids.push_back(id_of(order.at(position)));
  return ids;
}

// Visits at most twice as many rows per step as there are records: each sample is then seen more than once, and more
// rows change nothing.
SamplePlan::Coverage SamplePlan::coverage(std::int64_t epoch) const {
  std::vector<std::uint8_t> seen(static_cast<std::size_t>(ids_end_), 0);
  for (int r = 0; r < replicas(); ++r)
    for (std::int64_t step = 0; step < steps_in(epoch); ++step)
      visit(epoch, step, r, std::min(batch(r), 2 * ids_end_), [&](const SampleSlot& slot) {
        std::uint8_t& times = seen[static_cast<std::size_t>(slot.id)];
        if (slot.counts && times < 255) ++times;
      });
  Coverage coverage;
  for (const std::uint8_t times : seen) {
    ++(times == 0 ? coverage.never : times == 1 ? coverage.once : coverage.more);
    coverage.most = std::max<int>(coverage.most, times);
  }
  coverage.never -= ids_end_ - samples_;
  return coverage;
}

}  // namespace echelon::inline data
