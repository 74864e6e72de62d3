// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/spans.hpp"
#include "comm/peer_times.hpp"

namespace echelon::inline comm {
namespace {

bool holds(const std::vector<int>& peers, int peer) {
  return std::find(peers.begin(), peers.end(), peer) != peers.end();
}

}  // namespace

Executor::Executor(int window)
    : window_(static_cast<std::size_t>(std::max(window, kLeastWindow))), tasks_(window_.size()) {
  held_sends_.reserve(window_.size());
  held_receives_.reserve(window_.size());
}

void Executor::start(std::shared_ptr<const Plan> plan, void* data, DType dtype, int tag, WireForm* form,
                     const Help& help, Scratch* scratch) {
  ECHELON_CHECK(done(), "one plan at a time");
  plan_ = std::move(plan);
  dtype_ = dtype;
  tag_ = tag;
  form_ = form;
  help_ = form && !form->helped() ? Help{} : help;
  memory_.start(*plan_, data, dtype, form, scratch ? *scratch : own_scratch_);
  shared_.start(*plan_, data, dtype, tag);
  steps_ = plan_->steps();
  base_ = loaded_ = 0;
  wire_ = {};
  sent_of_raw_ = 1;
  fill_window();
}

void Executor::fill_window() {
  for (; loaded_ < steps_ && loaded_ < base_ + window_size(); ++loaded_)
    entry(loaded_) = {.step = plan_->step(loaded_), .state = State::waiting, .request = {}, .bytes = 0};
}

bool Executor::may_start(const Entry& entry, const SendBudget& budget) const {
  const Step& step = entry.step;
  for (const std::int64_t index : step.after)
    if (index >= 0 && !step_done(index)) return false;
  if (base_ < step.after_all) return false;
  if (step.kind == StepKind::send) {
    const Entry* other = overlapping_send(step);
    if (other && other->step.range != step.range) return false;
    return !holds(held_sends_, step.peer) && budget.allows(static_cast<std::size_t>(sent_of_raw_ * raw_bytes(step)));
  }
  if (step.kind == StepKind::recv) return !holds(held_receives_, step.peer);
  if (on_shared_memory(step.kind)) return !shared_held_;
  return helped_ == 0 || !form_;  // a form takes one call at a time
}

void Executor::note_held_back(const Entry& entry) {
  if (entry.step.kind == StepKind::send) held_sends_.push_back(entry.step.peer);
  if (entry.step.kind == StepKind::recv) held_receives_.push_back(entry.step.peer);
  if (on_shared_memory(entry.step.kind)) shared_held_ = true;
}

// Returns a send of a range of the buffer whose message is where this step's would be.
const Executor::Entry* Executor::overlapping_send(const Step& step) const {
  if (!memory_.shares_messages(step)) return nullptr;
  for (std::int64_t i = base_; i < loaded_; ++i) {
    const Entry& other = entry(i);
    if (other.state == State::under_way && other.step.kind == StepKind::send && other.step.slot < 0 &&
        other.step.range.begin < step.range.end && step.range.begin < other.step.range.end)
      return &other;
  }
  return nullptr;
}

void Executor::begin(Entry& entry, Transport& transport, SendBudget& budget) {
  const Step& step = entry.step;
  switch (step.kind) {
    case StepKind::send: {
      const Entry* same = overlapping_send(step);
      const PlanMemory::Block message = memory_.outgoing(step, same ? same->bytes : 0);
      entry.bytes = message.bytes;
      entry.request = transport.isend(step.peer, tag_, message.data, message.bytes);
      sent_of_raw_ = static_cast<double>(entry.bytes) / std::max(1.0, raw_bytes(step));
      budget.began(entry.bytes, transport.clock().now_s());
      ++wire_.messages_sent;
      wire_.bytes_sent += message.bytes;
      break;
    }
    case StepKind::recv: {
      const PlanMemory::Block room = memory_.incoming(step);
      entry.request = transport.irecv(step.peer, tag_, room.data, room.bytes);
      break;
    }
    case StepKind::library:
      ++wire_.library_calls;
      wire_.library_bytes += static_cast<std::size_t>(step.range.elems()) * size_of(dtype_);
      entry.request = transport.iallreduce(memory_.buffer(step), static_cast<std::size_t>(step.range.elems()), dtype_);
      break;
    case StepKind::reduce:
    case StepKind::copy:
      entry.helped = hand_over(entry);
      if (!entry.helped) step.kind == StepKind::reduce ? memory_.reduce(step) : memory_.copy(step);
      break;
    case StepKind::put:
    case StepKind::sum:
    case StepKind::get: break;  // run_shared
  }
  const bool local = step.kind == StepKind::reduce || step.kind == StepKind::copy;
  entry.state = local && !entry.helped ? State::done : State::under_way;
  if (on_shared_memory(step.kind)) return;
  entry.since_s = transport.clock().now_s();
  if (step.kind == StepKind::send) peer_times_place.sent(step.peer, entry.since_s);
}

// Hands the step to a free helper thread if it is long enough.
bool Executor::hand_over(Entry& entry) {
  if (!help_.threads || raw_bytes(entry.step) < static_cast<double>(help_.least_bytes) || !help_.threads->has_free())
    return false;
  task(entry).set(memory_, entry.step);
  help_.threads->submit(task(entry));
  ++helped_;
  return true;
}

// Most steps end at once, and the clock is not read for them.
bool Executor::run_shared(Entry& entry, Transport& transport) {
  const int peer = shared_.run(entry.step, transport);
  if (peer == SharedSteps::kDone) {
    entry.state = State::done;
    return true;
  }
  if (entry.awaited == SharedSteps::kDone) entry.since_s = transport.clock().now_s();
  entry.awaited = peer;
  shared_held_ = true;
  return false;
}

bool Executor::finish_if_done(Entry& entry, Transport& transport, SendBudget& budget) {
  if (on_shared_memory(entry.step.kind)) return run_shared(entry, transport);
  if (entry.helped) {
    if (!task(entry).done()) return false;
    --helped_;
    entry.state = State::done;
    task(entry).check();
    return true;
  }
  const std::optional<Completion> completion = transport.test(entry.request);
  if (!completion) return false;
  const bool sending = entry.step.kind == StepKind::send;
  entry.state = State::done;
  if (entry.step.kind == StepKind::recv && peer_times_place.times)
    peer_times_place.received(entry.step.peer, completion->bytes, entry.since_s, transport.clock().now_s());
  if (SpanRecorder* spans = open_spans(); spans && entry.step.kind != StepKind::library)
    spans->add({.begin_s = entry.since_s,
                .end_s = transport.clock().now_s(),
                .bytes = static_cast<std::int64_t>(sending ? entry.bytes : completion->bytes),
                .peer = entry.step.peer,
                .kind = sending ? SpanKind::send : SpanKind::receive});
  if (sending) budget.ended(entry.bytes, transport.clock().now_s());
  if (entry.step.kind == StepKind::recv && !memory_.arrived(entry.step, completion->bytes))
    throw EnvironmentError(
        fmt::format("plan '{}': {} bytes came from rank {}, but {} were expected; do all ranks run the "
                    "same configuration?",
                    plan_->name(), completion->bytes, completion->peer, memory_.incoming(entry.step).bytes));
  return true;
}

bool Executor::advance(Transport& transport, SendBudget& budget) {
  held_sends_.clear();
  held_receives_.clear();
  shared_held_ = false;
  bool moved = false;
  for (std::int64_t i = base_; i < loaded_; ++i) {
    Entry& at = entry(i);
    if (at.state == State::waiting) {
      if (may_start(at, budget)) {
        begin(at, transport, budget);
        moved = true;
      } else {
        note_held_back(at);
      }
    }
    if (at.state == State::under_way) moved |= finish_if_done(at, transport, budget);
  }
  while (base_ < loaded_ && entry(base_).state == State::done) ++base_;
  fill_window();
  if (done()) {
    memory_.finish();
    shared_.finish();
  }
  return moved;
}

bool Executor::advance(Transport& transport) {
  SendBudget unlimited;
  return advance(transport, unlimited);
}

void Executor::cancel(Transport& transport, SendBudget& budget) {
  for (std::int64_t i = base_; i < loaded_; ++i) {
    Entry& at = entry(i);
    if (at.state != State::under_way) continue;
    while (at.helped && !task(at).done()) std::this_thread::yield();
    if (at.step.kind == StepKind::send) budget.forget(at.bytes);
    if (at.request.valid()) transport.cancel(at.request);
  }
  base_ = loaded_ = steps_ = 0;
  helped_ = 0;
}

std::optional<StepWait> Executor::wait() const {
  for (std::int64_t i = base_; i < loaded_; ++i) {
    const Entry& at = entry(i);
    if (at.state == State::under_way && !at.helped)
      return StepWait{.step = i,
                      .peer = at.step.kind == StepKind::library ? -1
                              : on_shared_memory(at.step.kind)  ? at.awaited
                                                                : at.step.peer,
                      .sending = at.step.kind == StepKind::send,
                      .since_s = at.since_s};
  }
  return std::nullopt;
}

}  // namespace echelon::inline comm
