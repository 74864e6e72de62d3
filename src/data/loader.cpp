// SPDX-License-Identifier: Apache-2.0
#include "data/loader.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <compare>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "data/chunk_cache.hpp"
#include "data/files_ahead.hpp"
#include "data/foreign_file.hpp"
#include "data/row_makers.hpp"

namespace echelon::inline data {

namespace {

constexpr std::int64_t kFilesAhead = 32;  // of one sample each

struct Position {
  std::int64_t epoch = 0, step = 0;
  auto operator<=>(const Position&) const = default;
};

}  // namespace

struct Loader::Body {
  Body(const Dataset& dataset, SamplePlan the_plan, const LoaderOptions& the_options);
  ~Body() { stop(); }

  void run();
  void fill(BatchMemory& slot, std::int64_t epoch, std::int64_t step, const std::vector<SampleSlot>& ids,
            std::int64_t drawn = -1);
  void mix(BatchMemory& slot, const std::vector<SampleSlot>& ids);
  bool fill_drawn();
  BatchMemory* wait_for_free();
  bool fill_next(Position& next);
  bool to_own_step(Position& next) const;
  std::vector<SampleSlot> ids_of(const Position& at) const;
  void look_ahead(const Position& next);
  const Batch* take(std::unique_lock<std::mutex>& lock);
  void leave_out();
  void stop();

  SamplePlan plan;
  LoaderOptions options;
  std::int64_t n;
  RowMakers rows;
  ChunkCache cache;
  std::vector<double> stored_bytes_a_sample;  // [file]
  std::vector<std::unique_ptr<BatchMemory>> slots;
  std::unique_ptr<FilesAhead> ahead;  // null unless files are one sample each
  Position announced;                 // the first step whose files are not announced
  std::int64_t steps_ahead = 0;       // steps from the next one on whose files are announced

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<BatchMemory*> free, ready;  // the mutex guards this and all below
  BatchMemory* handed_out = nullptr;
  Position needed;  // batches before it will not be requested
  bool stopping = false, finished = false;
  std::exception_ptr error;

  double wait_s = 0;
  double bytes_used = 0;
  std::atomic<std::uint64_t> bytes_read = 0;
  std::thread thread;
};

Loader::Body::Body(const Dataset& dataset, SamplePlan the_plan, const LoaderOptions& the_options)
    : plan(std::move(the_plan)),
      options(the_options),
      n(options.all_replicas ? plan.global_batch() : plan.batch(options.replica)),
      rows(dataset, options.dtype, options.augmentation, options.threads),
      cache(dataset, options.buffer_bytes) {
  ECHELON_CHECK_EQ(plan.ids_end(), dataset.samples(), "samples of the plan and of the data set");
  ECHELON_CHECK(options.dtype == DType::f32 || options.dtype == DType::f64, "models compute in f32 or f64");
  ECHELON_CHECK_GE(options.prefetch, 1, "at least one batch ahead");
  ECHELON_CHECK(options.start_step >= 0 && options.start_step <= plan.steps_in(options.start_epoch),
                "start at step {} of {}", options.start_step, plan.steps_in(options.start_epoch));
  for (const Shard& shard : dataset.shards)
    stored_bytes_a_sample.push_back(dataset.share * static_cast<double>(shard.bytes) /
                                    static_cast<double>(shard.samples));
  for (int i = 0; i < options.prefetch + 1; ++i) {
    slots.push_back(std::make_unique<BatchMemory>(dataset, n, options.dtype));
    free.push_back(slots.back().get());
  }
  if (dataset.hdf5 && is_one_sample_a_file(*dataset.hdf5)) ahead = std::make_unique<FilesAhead>();
  thread = std::thread([this, rank = thread_rank()] {
    set_thread_rank(rank);
    run();
  });
}

void Loader::Body::stop() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  if (options.draws != nullptr) options.draws->stop();
  thread.join();
}

// Returns null if the loader is being destroyed.
BatchMemory* Loader::Body::wait_for_free() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return stopping || !free.empty(); });
  if (stopping) return nullptr;
  BatchMemory* slot = free.front();
  free.pop_front();
  return slot;
}

void Loader::Body::run() {
  std::exception_ptr failure;
  try {
    Position next{options.start_epoch, options.start_step};
    while (options.draws != nullptr ? fill_drawn() : fill_next(next)) {
    }
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex);
  error = failure;
  finished = true;
  changed.notify_all();
}

// Moves to the next step in which the replica takes samples. Returns false if there is none.
bool Loader::Body::to_own_step(Position& next) const {
  for (;;) {
    if (next.step >= plan.steps_in(next.epoch))
      next = {next.epoch + 1, 0};
    else if (!options.all_replicas && !plan.takes(next.epoch, next.step, options.replica))
      next.step = plan.warmup_steps(next.epoch);
    else
      break;
  }
  return options.end_epoch < 0 || next.epoch < options.end_epoch;
}

std::vector<SampleSlot> Loader::Body::ids_of(const Position& at) const {
  return options.all_replicas ? plan.all_ids(at.epoch, at.step) : plan.ids(at.epoch, at.step, options.replica);
}

// Announces the files of the steps that follow.
void Loader::Body::look_ahead(const Position& next) {
  if (!ahead) return;
  if (announced < next) announced = next, steps_ahead = 0;
  const std::int64_t most = std::max<std::int64_t>(2, kFilesAhead / std::max<std::int64_t>(n, 1));
  std::vector<std::string> paths;
  for (; steps_ahead < most && to_own_step(announced); ++steps_ahead, ++announced.step)
    for (const SampleSlot& slot : ids_of(announced)) paths.push_back(cache.path_of(slot.id));
  --steps_ahead;  // the next step is filled now
  ahead->expect(paths);
}

// Returns false if there is nothing more to read.
bool Loader::Body::fill_next(Position& next) {
  if (!to_own_step(next)) return false;
  BatchMemory* slot = wait_for_free();
  if (slot == nullptr) return false;
  {
    const std::lock_guard lock(mutex);
    next = std::max(next, needed);
  }
  look_ahead(next);
  fill(*slot, next.epoch, next.step, ids_of(next));
  ++next.step;
  return true;
}

// Draws only as many batches as there is room for, because no other replica can take a batch that a slow one has drawn.
bool Loader::Body::fill_drawn() {
  BatchMemory* slot = wait_for_free();
  if (slot == nullptr) return false;
  const std::optional<std::int64_t> number = options.draws->next();
  if (!number) return false;
  const Draw draw = options.draws->plan().at(*number);
  fill(*slot, draw.epoch, draw.batch, options.draws->plan().ids(draw), *number);
  return true;
}

void Loader::Body::fill(BatchMemory& slot, std::int64_t epoch, std::int64_t step, const std::vector<SampleSlot>& ids,
                        std::int64_t drawn) {
  const Collator& collate = rows.collator();
  collate.begin(slot, epoch, step, n, plan.length(epoch, step));
  double used = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::uint8_t* const place = cache.passes() ? collate.place_of(slot, static_cast<std::int64_t>(i)) : nullptr;
    const Record record = place != nullptr ? cache.record_into(ids[i].id, place) : cache.record(ids[i].id);
    collate.put(slot, static_cast<std::int64_t>(i), record, ids[i]);
    rows.draw(slot, static_cast<std::int64_t>(i), record, ids[i]);
    used += stored_bytes_a_sample[record.file];
  }
  rows.finish();
  if (collate.mixes()) mix(slot, ids);
  bytes_read = cache.bytes_read();
  const std::lock_guard lock(mutex);
  bytes_used += used;
  slot.batch.drawn = drawn;
  ready.push_back(&slot);
  changed.notify_all();
}

// Mixes rows with samples of the whole step, or of the own batch of a replica whose samples are its own or drawn.
void Loader::Body::mix(BatchMemory& slot, const std::vector<SampleSlot>& ids) {
  const std::int64_t epoch = slot.batch.epoch;
  const bool whole = plan.sharding() == Sharding::record && options.draws == nullptr;
  const std::int64_t batches = options.all_replicas && !whole ? plan.replicas() : 1;
  std::size_t first = 0;
  for (std::int64_t b = 0; b < batches; ++b) {
    const std::size_t count = batches == 1 ? ids.size() : static_cast<std::size_t>(plan.batch(static_cast<int>(b)));
    const std::vector<SampleSlot> own(ids.begin() + static_cast<std::ptrdiff_t>(first),
                                      ids.begin() + static_cast<std::ptrdiff_t>(first + count));
    const std::vector<std::int64_t> pool =
        SampleMixer::pool(whole && !options.all_replicas ? plan.all_ids(epoch, slot.batch.step) : own);
    for (std::size_t i = first; i < first + count; ++i) {
      const std::int64_t other = rows.collator().mixer().other(pool, epoch, ids[i].id);
      const Record record = cache.record(other);
      rows.collator().mix_labels(slot, static_cast<std::int64_t>(i), ids[i], record);
      rows.mix(slot, static_cast<std::int64_t>(i), ids[i], record, other);
    }
    first += count;
  }
  rows.finish();
}

Loader::Loader(const Dataset& dataset, const SamplePlan& plan, const LoaderOptions& options)
    : body_(std::make_unique<Body>(with_slab(dataset, options.slab, options.augmentation.any()), plan, options)) {}
Loader::~Loader() = default;

// Returns the first batch that is ready; null if none is left.
const Batch* Loader::Body::take(std::unique_lock<std::mutex>& lock) {
  if (handed_out != nullptr) {
    free.push_back(std::exchange(handed_out, nullptr));
    changed.notify_all();
  }
  changed.wait(lock, [&] {
    leave_out();
    return !ready.empty() || finished;
  });
  if (ready.empty()) {
    if (error) std::rethrow_exception(error);
    return nullptr;
  }
  handed_out = ready.front();
  ready.pop_front();
  return &handed_out->batch;
}

// Frees the batches that were read ahead but are skipped.
void Loader::Body::leave_out() {
  while (!ready.empty() && Position{ready.front()->batch.epoch, ready.front()->batch.step} < needed) {
    free.push_back(ready.front());
    ready.pop_front();
    changed.notify_all();
  }
}

const Batch& Loader::next() {
  const ScopedTimer timer(body_->wait_s);
  std::unique_lock lock(body_->mutex);
  const Batch* batch = body_->take(lock);
  ECHELON_CHECK(batch != nullptr, "no batch beyond epoch {}", body_->options.end_epoch);
  return *batch;
}

const Batch& Loader::at(std::int64_t epoch, std::int64_t step) {
  const ScopedTimer timer(body_->wait_s);
  std::unique_lock lock(body_->mutex);
  body_->needed = {epoch, step};
  const Batch* batch = body_->take(lock);
  ECHELON_CHECK(batch != nullptr, "no batch beyond epoch {}", body_->options.end_epoch);
  ECHELON_CHECK(batch->epoch == epoch && batch->step == step,
                "step {} of epoch {} was requested, but {} of {} comes next", step, epoch, batch->step, batch->epoch);
  return *batch;
}

const Batch* Loader::draw() {
  const ScopedTimer timer(body_->wait_s);
  std::unique_lock lock(body_->mutex);
  return body_->take(lock);
}

double Loader::wait_s() const { return body_->wait_s; }
std::uint64_t Loader::bytes_read() const { return body_->bytes_read; }
std::uint64_t Loader::bytes_used() const {
  const std::lock_guard lock(body_->mutex);
  return static_cast<std::uint64_t>(std::llround(body_->bytes_used));
}

}  // namespace echelon::inline data
