#include "data/loader.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "data/chunk_cache.hpp"
#include "data/normalise.hpp"

namespace echelon {
namespace {

// Memory at a cache line's border.
class Aligned {
 public:
  explicit Aligned(std::size_t bytes) : data_(std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 64)) {
    if (data_ == nullptr) throw std::bad_alloc();
  }
  std::uint8_t* get() const { return static_cast<std::uint8_t*>(data_.get()); }

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  std::unique_ptr<void, Free> data_;
};

struct Slot {
  Slot(std::size_t n, std::size_t sample_bytes, std::size_t real_bytes)
      : samples(n * sample_bytes), labels(n * sizeof(std::int32_t)), weights(n * real_bytes), ids(n) {}
  Aligned samples, labels, weights;
  std::vector<std::int32_t> ids;
  Batch batch;
};

}  // namespace

struct Loader::Body {
  Body(const Dataset& dataset, ShardPlan the_plan, const LoaderOptions& the_options);
  ~Body() { stop(); }

  void run();
  void fill(Slot& slot, std::int64_t epoch, std::int64_t step);
  Slot* wait_for_free();
  void stop();

  ShardPlan plan;
  LoaderOptions options;
  std::int64_t n;
  std::size_t sample_bytes, real_bytes;  // in the loader's dtype
  Normaliser normalise;
  ChunkCache cache;
  std::vector<double> stored_bytes_a_sample;  // by file
  std::vector<std::unique_ptr<Slot>> slots;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Slot*> free, ready;  // below: guarded by the mutex
  Slot* handed_out = nullptr;
  bool stopping = false, finished = false;
  std::exception_ptr error;

  double wait_s = 0;
  double bytes_used = 0;
  std::atomic<std::uint64_t> bytes_read = 0;
  std::thread thread;
};

Loader::Body::Body(const Dataset& dataset, ShardPlan the_plan, const LoaderOptions& the_options)
    : plan(std::move(the_plan)),
      options(the_options),
      n(options.all_replicas ? plan.global_batch() : plan.batch(options.replica)),
      sample_bytes(static_cast<std::size_t>(dataset.sample_shape.elems()) * size_of(options.dtype)),
      real_bytes(size_of(options.dtype)),
      normalise(dataset),
      cache(dataset, options.buffer_bytes) {
  ECHELON_CHECK_EQ(plan.samples(), dataset.samples(), "the plan is of other data");
  ECHELON_CHECK(options.dtype == DType::f32 || options.dtype == DType::f64, "models compute in f32 or f64");
  ECHELON_CHECK_GE(options.prefetch, 1, "at least one batch ahead");
  ECHELON_CHECK(options.start_step >= 0 && options.start_step <= plan.steps_per_epoch(), "start at step {} of {}",
                options.start_step, plan.steps_per_epoch());
  for (const Shard& shard : dataset.shards)
    stored_bytes_a_sample.push_back(static_cast<double>(shard.bytes) / static_cast<double>(shard.samples));
  for (int i = 0; i < options.prefetch + 1; ++i) {
    slots.push_back(std::make_unique<Slot>(static_cast<std::size_t>(n), sample_bytes, real_bytes));
    free.push_back(slots.back().get());
  }
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
  thread.join();
}

// None where the loader is being destroyed.
Slot* Loader::Body::wait_for_free() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return stopping || !free.empty(); });
  if (stopping) return nullptr;
  Slot* slot = free.front();
  free.pop_front();
  return slot;
}

void Loader::Body::run() {
  std::exception_ptr failure;
  try {
    std::int64_t step = options.start_step;
    for (std::int64_t epoch = options.start_epoch; options.end_epoch < 0 || epoch < options.end_epoch; ++epoch) {
      for (; step < plan.steps_per_epoch(); ++step) {
        Slot* slot = wait_for_free();
        if (slot == nullptr) return;
        fill(*slot, epoch, step);
        const std::lock_guard lock(mutex);
        ready.push_back(slot);
        changed.notify_all();
      }
      step = 0;
    }
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex);
  error = failure;
  finished = true;
  changed.notify_all();
}

void Loader::Body::fill(Slot& slot, std::int64_t epoch, std::int64_t step) {
  const std::vector<SampleSlot> ids =
      options.all_replicas ? plan.all_ids(epoch, step) : plan.ids(epoch, step, options.replica);
  auto* labels = reinterpret_cast<std::int32_t*>(slot.labels.get());
  Batch& batch = slot.batch;
  batch = {.epoch = epoch, .step = step, .n = n};
  double used = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const ChunkCache::Record record = cache.record(ids[i].id);
    normalise(record.sample, slot.samples.get() + i * sample_bytes, options.dtype);
    labels[i] = record.label;
    slot.ids[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(ids[i].id));
    const double weight = ids[i].counts ? 1 : 0;
    with_float(options.dtype, [&](auto zero) {
      reinterpret_cast<decltype(zero)*>(slot.weights.get())[i] = static_cast<decltype(zero)>(weight);
    });
    batch.weight += weight;
    used += stored_bytes_a_sample[record.file];
  }
  batch.samples = slot.samples.get();
  batch.labels = labels;
  batch.weights = slot.weights.get();
  batch.ids = slot.ids.data();
  bytes_read = cache.bytes_read();
  const std::lock_guard lock(mutex);
  bytes_used += used;
}

Loader::Loader(const Dataset& dataset, const ShardPlan& plan, const LoaderOptions& options)
    : body_(std::make_unique<Body>(dataset, plan, options)) {}
Loader::~Loader() = default;

const Batch& Loader::next() {
  Body& body = *body_;
  const ScopedTimer timer(body.wait_s);
  std::unique_lock lock(body.mutex);
  if (body.handed_out != nullptr) {
    body.free.push_back(std::exchange(body.handed_out, nullptr));
    body.changed.notify_all();
  }
  body.changed.wait(lock, [&] { return !body.ready.empty() || body.finished; });
  if (body.ready.empty()) {
    if (body.error) std::rethrow_exception(body.error);
    ECHELON_CHECK(false, "no batch beyond epoch {}", body.options.end_epoch);
  }
  body.handed_out = body.ready.front();
  body.ready.pop_front();
  return body.handed_out->batch;
}

double Loader::wait_s() const { return body_->wait_s; }
std::uint64_t Loader::bytes_read() const { return body_->bytes_read; }
std::uint64_t Loader::bytes_used() const {
  const std::lock_guard lock(body_->mutex);
  return static_cast<std::uint64_t>(body_->bytes_used + 0.5);
}

}  // namespace echelon
