// SPDX-License-Identifier: Apache-2.0
#include "base/spans.hpp"

#include <utility>

namespace echelon::inline base {

const char* name_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::step: return "step";
    case SpanKind::data: return "data";
    case SpanKind::forward: return "forward";
    case SpanKind::backward: return "backward";
    case SpanKind::layer: return "layer";
    case SpanKind::split_wait: return "split wait";
    case SpanKind::exchange_wait: return "exchange wait";
    case SpanKind::optimiser: return "optimizer";
    case SpanKind::meeting: return "meeting";
    case SpanKind::hooks: return "hooks";
    case SpanKind::evaluation: return "evaluation";
    case SpanKind::checkpoint: return "checkpoint";
    case SpanKind::encode: return "encode";
    case SpanKind::decode: return "decode";
    case SpanKind::sum: return "sum";
    case SpanKind::serve: return "serve";
    case SpanKind::exchange: return "exchange";
    case SpanKind::send: return "send";
    case SpanKind::receive: return "receive";
  }
  return "";
}

SpanRecorder::SpanRecorder(std::int64_t first, std::int64_t last, bool serves, std::size_t most)
    : first_(first), last_(last), serves_(serves), most_(most) {}

void SpanRecorder::after_step(std::int64_t step, double now_s) {
  if (serves_) return;
  step_.store(step + 1, std::memory_order_relaxed);
  set_open(step + 1 >= first_ && step + 1 <= last_, now_s);
}

void SpanRecorder::worker_at(std::int64_t steps, double now_s) {
  if (!serves_) return;
  const std::int64_t step = first_step_ + steps;
  if (step > step_.load(std::memory_order_relaxed)) step_.store(step, std::memory_order_relaxed);
  if (step + 1 >= first_) set_open(true, now_s);
}

void SpanRecorder::set_open(bool open, double now_s) {
  const std::lock_guard lock(mutex_);
  if (taken_ || open == open_) return;
  if (open && contents_.spans.capacity() == 0) contents_.spans.reserve(1 << 12);
  if (!open) closed_s_ = now_s;
  open_ = open;
}

void SpanRecorder::put(const Span& span) {
  const std::lock_guard lock(mutex_);
  if (taken_) return;
  if (contents_.spans.size() < most_)
    contents_.spans.push_back(span);
  else
    ++contents_.dropped;
}

void SpanRecorder::add(Span span) {
  if (!open()) return;
  span.step = step();
  if (span.kind == SpanKind::send)
    span.lane = SpanLane::sends;
  else if (span.kind == SpanKind::receive)
    span.lane = SpanLane::receives;
  else
    span.lane = span_place.lane;
  if (span.peer >= 0 && span_place.world != nullptr) span.peer = span_place.world[span.peer];
  put(span);
}

void SpanRecorder::add_device(double begin_s, double end_s, SpanKind kind, std::int64_t step) {
  if (end_s <= begin_s) return;
  put({.begin_s = begin_s, .end_s = end_s, .step = step, .kind = kind, .lane = SpanLane::device});
}

void SpanRecorder::add_exchange(double begin_s, double end_s, std::int64_t bytes, int bucket) {
  if (end_s <= begin_s || begin_s <= 0) return;  // there was no exchange
  if (!open() && begin_s >= closed_s_.load(std::memory_order_relaxed)) return;
  put({.begin_s = begin_s,
       .end_s = end_s,
       .step = step(),
       .bytes = bytes,
       .index = bucket,
       .kind = SpanKind::exchange,
       .lane = SpanLane::exchange});
}

SpanRecorder::Contents SpanRecorder::take() {
  const std::lock_guard lock(mutex_);
  open_ = false;
  taken_ = true;
  return std::exchange(contents_, {});
}

}  // namespace echelon::inline base
