#include "comm/collective/executor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "device/vector.hpp"

namespace echelon {

Executor::Executor(int window) : window_(static_cast<std::size_t>(std::max(window, kLeastWindow))) {}

void Executor::start(std::shared_ptr<const Plan> plan, void* data, DType dtype, int tag, int ranks) {
  ECHELON_CHECK(done(), "one plan at a time");
  plan_ = std::move(plan);
  data_ = static_cast<std::byte*>(data);
  dtype_ = dtype;
  tag_ = tag;
  steps_ = plan_->steps();
  base_ = loaded_ = 0;
  wire_ = {};
  send_held_.resize(static_cast<std::size_t>(ranks));
  recv_held_.resize(static_cast<std::size_t>(ranks));
  const std::size_t needed =
      static_cast<std::size_t>(plan_->slots()) * static_cast<std::size_t>(plan_->slot_elems()) * size_of(dtype);
  if (needed > scratch_bytes_) {
    scratch_.reset();
    scratch_bytes_ = (needed + 63) / 64 * 64;
    scratch_.reset(static_cast<std::byte*>(std::aligned_alloc(64, scratch_bytes_)));
    if (!scratch_) throw MemoryError(fmt::format("all-reduce '{}': no {} bytes of scratch", plan_->name(), needed));
  }
  fill_window();
}

void Executor::fill_window() {
  for (; loaded_ < steps_ && loaded_ < base_ + window_size(); ++loaded_)
    entry(loaded_) = {.step = plan_->step(loaded_), .state = State::waiting, .request = {}, .since_s = 0};
}

bool Executor::may_start(const Entry& entry, const SendBudget& budget) const {
  const Step& step = entry.step;
  for (const std::int64_t index : step.after)
    if (index >= 0 && !step_done(index)) return false;
  if (base_ < step.after_all) return false;
  if (step.kind == StepKind::send)
    return send_held_[static_cast<std::size_t>(step.peer)] != pass_ &&
           (budget.under_way < budget.limit || budget.extra > 0);
  if (step.kind == StepKind::recv) return recv_held_[static_cast<std::size_t>(step.peer)] != pass_;
  return true;
}

void Executor::note_held_back(const Entry& entry) {
  if (entry.step.kind == StepKind::send) send_held_[static_cast<std::size_t>(entry.step.peer)] = pass_;
  if (entry.step.kind == StepKind::recv) recv_held_[static_cast<std::size_t>(entry.step.peer)] = pass_;
}

void* Executor::buffer(const Step& step) const {
  return data_ + static_cast<std::size_t>(step.range.begin) * size_of(dtype_);
}

void* Executor::slot(const Step& step) const {
  return scratch_.get() +
         static_cast<std::size_t>(step.slot) * static_cast<std::size_t>(plan_->slot_elems()) * size_of(dtype_);
}

void Executor::begin(Entry& entry, Transport& transport, SendBudget& budget) {
  const Step& step = entry.step;
  entry.state = State::under_way;
  switch (step.kind) {
    case StepKind::send:
      if (budget.under_way >= budget.limit) --budget.extra;
      ++budget.under_way;
      ++wire_.messages_sent;
      wire_.bytes_sent += bytes(step);
      entry.request = transport.isend(step.peer, tag_, step.slot < 0 ? buffer(step) : slot(step), bytes(step));
      break;
    case StepKind::recv:
      entry.request = transport.irecv(step.peer, tag_, step.slot < 0 ? buffer(step) : slot(step), bytes(step));
      break;
    case StepKind::library:
      ++wire_.library_calls;
      wire_.library_bytes += bytes(step);
      entry.request = transport.iallreduce(buffer(step), static_cast<std::size_t>(step.range.elems()), dtype_);
      break;
    case StepKind::reduce:
      host_vector_ops().add(dtype_, buffer(step), slot(step), static_cast<std::size_t>(step.range.elems()));
      entry.state = State::done;
      break;
    case StepKind::copy:
      host_vector_ops().copy(dtype_, step.to_slot ? slot(step) : buffer(step), step.to_slot ? buffer(step) : slot(step),
                             static_cast<std::size_t>(step.range.elems()));
      entry.state = State::done;
      break;
  }
  entry.since_s = now_s();
}

bool Executor::finish_if_done(Entry& entry, Transport& transport, SendBudget& budget) {
  const std::optional<Completion> completion = transport.test(entry.request);
  if (!completion) return false;
  entry.state = State::done;
  if (entry.step.kind == StepKind::send) --budget.under_way;
  if (entry.step.kind == StepKind::recv && completion->bytes != bytes(entry.step))
    throw EnvironmentError(
        fmt::format("plan '{}': {} bytes came from rank {} where {} were expected; do all ranks run the "
                    "same configuration?",
                    plan_->name(), completion->bytes, completion->peer, bytes(entry.step)));
  return true;
}

bool Executor::advance(Transport& transport, SendBudget& budget) {
  ++pass_;
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
    if (at.step.kind == StepKind::send) --budget.under_way;
    if (at.request.valid()) transport.cancel(at.request);
  }
  base_ = loaded_ = steps_ = 0;
}

std::optional<StepWait> Executor::wait() const {
  for (std::int64_t i = base_; i < loaded_; ++i) {
    const Entry& at = entry(i);
    if (at.state == State::under_way)
      return StepWait{.step = i,
                      .peer = at.step.kind == StepKind::library ? -1 : at.step.peer,
                      .sending = at.step.kind == StepKind::send,
                      .since_s = at.since_s};
  }
  return std::nullopt;
}

}  // namespace echelon
