// SPDX-License-Identifier: Apache-2.0
// Records for run.trace when a rank did what. Spans of time are recorded by its compute thread and by the thread that
// drives its communication engine, while the window of traced steps is open. If the device runs behind the host, its
// work is recorded by the device's own clock (train/device_times.hpp).
//
// Threads record through a thread-local place (span_place), which is empty unless a trace was requested. Without a
// trace a span costs a branch and allocates nothing. With one, it costs one more atomic load outside the window; inside
// the window it costs two readings of the clock and an entry of 64 bytes under a lock.
//
//   const SpanTimer timer(outcome.exchange_wait_s, SpanKind::exchange_wait);   // a ScopedTimer that is a span too
//   const WatchedSpan span(SpanKind::forward);                                 // the same, timed by watchers alone
//   const SpanScope span(SpanKind::encode);                                    // a span alone
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "base/clock.hpp"

namespace echelon::inline base {

enum class SpanKind : std::uint8_t {
  step,           // a step of the loop, from the end of the last one to its own
  data,           // waiting for a batch and copying it to the device
  forward,        //
  backward,       //
  layer,          // a part of forward or backward, named after the layer
  split_wait,     // waiting for other ranks of the same replica
  exchange_wait,  // the compute thread is blocked on the exchange: the exposed part
  optimiser,      //
  meeting,        // waiting until all ranks have met
  hooks,          // records, agreement, and other observers of the loop
  evaluation,     //
  checkpoint,     //
  encode,         // a codec
  decode,         //
  sum,            // summing received values
  serve,          // a server applies an update; peer: the worker
  exchange,       // a bucket, from its first message to its last; index: the bucket
  send,           // a message in flight
  receive,        // a message that was awaited
};
// Returns "exchange wait".
const char* name_of(SpanKind kind);

// Spans of one lane and rank follow one another or are nested; from `exchange` on they overlap.
enum class SpanLane : std::uint8_t { compute, device, engine, exchange, sends, receives, helpers };

struct Span {
  double begin_s = 0, end_s = 0;  // by this rank's clock
  const char* name = nullptr;     // null: the name of its kind. Must outlive the recorder's contents
  std::int64_t step = 0;          // step that this rank was in, counted from 1
  std::int64_t bytes = -1;        // -1: none
  std::int32_t peer = -1;         // rank in the world; -1: none
  std::int32_t index = -1;        // number of a bucket; -1: none
  SpanKind kind = SpanKind::step;
  SpanLane lane = SpanLane::compute;
};

// The spans of a rank. Callable from any thread.
class SpanRecorder {
 public:
  static constexpr std::size_t kMostSpans = std::size_t{1} << 20;  // 64 MB; further ones are only counted

  // Records steps first to last, counted from 1. `serves`: this rank does no steps; its window opens with the first
  // worker's update in or after the step before `first`, and stays open.
  SpanRecorder(std::int64_t first, std::int64_t last, bool serves = false, std::size_t most = kMostSpans);

  // This rank has finished step number `step` of the run and begins the next one at `now_s`.
  void after_step(std::int64_t step, double now_s);
  // Called on a serving rank: a worker has done this many steps since the recorder was made for `first_step`.
  void worker_at(std::int64_t steps, double now_s);
  void begins_at(std::int64_t first_step) { first_step_ = first_step; }

  bool open() const { return open_.load(std::memory_order_relaxed); }
  // Whether the traced steps of this rank are over; always true if it serves.
  bool over() const { return serves_ || step_.load(std::memory_order_relaxed) > last_; }
  bool serves() const { return serves_; }
  // The step that this rank is in, counted from 1.
  std::int64_t step() const { return step_.load(std::memory_order_relaxed); }
  // Fills in step and lane, except for spans of an exchange lane.
  void add(Span span);
  // Adds a span of the device in a step that began in the window, also after the window, because its times arrive late.
  void add_device(double begin_s, double end_s, SpanKind kind, std::int64_t step);
  // Adds the span of a bucket, also if it ended after the window but began in it.
  void add_exchange(double begin_s, double end_s, std::int64_t bytes, int bucket);

  struct Contents {
    std::vector<Span> spans;
    std::uint64_t dropped = 0;
  };
  Contents take();  // closes the window for good

 private:
  void set_open(bool open, double now_s);
  void put(const Span& span);

  const std::int64_t first_, last_;
  const bool serves_;
  const std::size_t most_;
  std::int64_t first_step_ = 0;
  std::atomic<std::int64_t> step_ = 0;
  std::atomic<bool> open_ = false, taken_ = false;
  std::atomic<double> closed_s_ = -std::numeric_limits<double>::infinity();
  std::mutex mutex_;
  Contents contents_;
};

// Called at the beginning and the end of each SpanTimer of a thread, traced or not. The time that `ends` takes is part
// of the span (fault/injector.hpp).
class SpanWatcher {
 public:
  virtual ~SpanWatcher() = default;
  virtual void begins(SpanKind kind) = 0;
  virtual void ends(SpanKind kind, double begin_s) = 0;
};

// The destination of a thread's spans.
struct SpanPlace {
  SpanRecorder* recorder = nullptr;  // null: nowhere
  SpanLane lane = SpanLane::compute;
  const int* world = nullptr;      // [rank of the driven group] rank in the world; null: they are the same
  SpanWatcher* watcher = nullptr;  // null: none
  SpanWatcher* borders = nullptr;  // null: none; called before the watcher (train/device_times.hpp)
};
inline constinit thread_local SpanPlace span_place;

// Returns the recorder of this thread if its window is open; else null.
inline SpanRecorder* open_spans() {
  SpanRecorder* const recorder = span_place.recorder;
  return recorder != nullptr && recorder->open() ? recorder : nullptr;
}

// Sets this thread's place during its lifetime, and restores the last one.
class PlacedSpans {
 public:
  explicit PlacedSpans(const SpanPlace& place) : before_(span_place) { span_place = place; }
  ~PlacedSpans() { span_place = before_; }
  PlacedSpans(const PlacedSpans&) = delete;

 private:
  const SpanPlace before_;
};

// A ScopedTimer whose time is recorded as a span too, with the same two readings of the clock.
class SpanTimer {
 public:
  SpanTimer(double& total_s, SpanKind kind, const Clock& clock = host_clock())
      : total_s_(total_s), clock_(clock), begin_s_(clock.now_s()), kind_(kind) {
    if (span_place.borders != nullptr) span_place.borders->begins(kind);
    if (span_place.watcher != nullptr) span_place.watcher->begins(kind);
  }
  ~SpanTimer() {
    if (span_place.borders != nullptr) span_place.borders->ends(kind_, begin_s_);
    if (span_place.watcher != nullptr) span_place.watcher->ends(kind_, begin_s_);
    const double end_s = clock_.now_s();
    total_s_ += end_s - begin_s_;
    if (SpanRecorder* recorder = open_spans()) recorder->add({.begin_s = begin_s_, .end_s = end_s, .kind = kind_});
  }
  SpanTimer(const SpanTimer&) = delete;

 private:
  double& total_s_;
  const Clock& clock_;
  double begin_s_;
  SpanKind kind_;
};

// A SpanTimer whose time only the watchers of its thread count.
class WatchedSpan {
 public:
  explicit WatchedSpan(SpanKind kind, const Clock& clock = host_clock()) : timer_(seconds_, kind, clock) {}

 private:
  double seconds_ = 0;
  const SpanTimer timer_;
};

// Records its lifetime as a span.
class SpanScope {
 public:
  explicit SpanScope(SpanKind kind, const char* name = nullptr, int peer = -1) : recorder_(open_spans()) {
    if (recorder_ != nullptr) span_ = {.begin_s = now_s(), .name = name, .peer = peer, .kind = kind};
  }
  ~SpanScope() {
    if (recorder_ == nullptr) return;
    span_.end_s = now_s();
    recorder_->add(span_);
  }
  SpanScope(const SpanScope&) = delete;

 private:
  SpanRecorder* recorder_;
  Span span_;
};

}  // namespace echelon::inline base
