// SPDX-License-Identifier: Apache-2.0
#include "comm/protocol/driver.hpp"

#include <algorithm>
#include <limits>

#include "base/clock.hpp"
#include "base/spans.hpp"
#include "comm/peer_times.hpp"

namespace echelon::inline comm {
namespace {

// Whether a message could match either of two receives.
bool share_messages(const auto& a, const auto& b) {
  return a.tag == b.tag && (a.peer == b.peer || a.peer == kAnySource || b.peer == kAnySource);
}

}  // namespace

void ProtocolDriver::post(Token token, std::shared_ptr<const Event> after) {
  const std::lock_guard lock(mutex_);
  inbox_.push_back({token, std::move(after)});
  has_mail_.store(true, std::memory_order_release);
}

void ProtocolDriver::send(Token token, int peer, int tag, const void* data, std::size_t bytes, int priority) {
  const auto at = std::upper_bound(queued_.begin(), queued_.end(), priority,
                                   [](int p, const Send& other) { return p < other.priority; });
  queued_.insert(at, {token, peer, tag, static_cast<const std::byte*>(data), bytes, priority, messages_++, {}});
}

void ProtocolDriver::receive(Token token, int peer, int tag, void* data, std::size_t room) {
  new_receives_.push_back({token, peer, tag, static_cast<std::byte*>(data), room});
}

void ProtocolDriver::wait_for(Token token, int peer, int tag, std::int64_t step) {
  waits_[token] = {.peer = peer, .tag = tag, .step = step, .since_s = now_s_};
}

bool ProtocolDriver::pass(Transport& transport, SendBudget& budget) {
  try {
    return step(transport, budget);
  } catch (...) {
    end(transport, budget, std::current_exception());
    return true;
  }
}

// Receives are started before sends, so that no two ranks wait for each other's receive.
bool ProtocolDriver::step(Transport& transport, SendBudget& budget) {
  now_s_ = transport.clock().now_s();
  bool moved = false;
  if (!started_) {
    started_ = moved = true;
    deliver({.kind = ProtocolEvent::Kind::started});
  }
  if (!finished_) moved |= deliver_posts();
  if (!finished_) moved |= deliver_timers();
  if (!finished_) moved |= start_receives(transport);
  if (!finished_) moved |= finish_receives(transport);
  moved |= finish_sends(transport, budget);
  moved |= start_sends(transport, budget);
  if (finished_ && queued_.empty() && sends_.empty()) end(transport, budget);
  return moved;
}

void ProtocolDriver::deliver(const ProtocolEvent& event) {
  if (finished_) return;
  ProtocolEvent now = event;
  now.now_s = now_s_;
  machine_.on(now, *this);
}

bool ProtocolDriver::deliver_posts() {
  if (has_mail_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(mutex_);
    posts_.insert(posts_.end(), std::make_move_iterator(inbox_.begin()), std::make_move_iterator(inbox_.end()));
    inbox_.clear();
    has_mail_.store(false, std::memory_order_relaxed);
  }
  bool moved = false;
  for (std::size_t i = 0; i < posts_.size();) {
    if (posts_[i].after && !posts_[i].after->ready()) {
      ++i;
      continue;
    }
    const Token token = posts_[i].token;
    posts_.erase(posts_.begin() + static_cast<std::ptrdiff_t>(i));
    deliver({.kind = ProtocolEvent::Kind::posted, .token = token});
    moved = true;
  }
  return moved;
}

// A timer that is rearmed while it is handled fires in a later pass.
bool ProtocolDriver::deliver_timers() {
  due_.clear();
  for (const auto& [token, at_s] : timers_)
    if (at_s <= now_s_) due_.push_back(token);
  bool moved = false;
  for (const Token token : due_) {
    if (timers_.erase(token) == 0) continue;  // disarmed by an earlier timer
    deliver({.kind = ProtocolEvent::Kind::timer, .token = token});
    moved = true;
  }
  return moved;
}

// A receive in frames takes all arriving frames until its message is complete, so later receives that could match them
// must wait.
bool ProtocolDriver::must_wait(std::size_t next) const {
  const Receive& receive = new_receives_[next];
  const auto holds_up = [&](const Receive& other) { return in_frames(other.room) && share_messages(other, receive); };
  return std::any_of(receives_.begin(), receives_.end(), holds_up) ||
         std::any_of(new_receives_.begin(), new_receives_.begin() + static_cast<std::ptrdiff_t>(next),
                     [&](const Receive& other) { return share_messages(other, receive); });
}

void ProtocolDriver::start_frame(Receive& receive, Transport& transport) {
  receive.request = transport.irecv(receive.peer, receive.tag, receive.data + receive.arrived,
                                    std::min(receive.room - receive.arrived, frame_bytes_));
  receive.since_s = now_s_;
}

bool ProtocolDriver::start_receives(Transport& transport) {
  bool any = false;
  for (std::size_t i = 0; i < new_receives_.size();) {
    if (must_wait(i)) {
      ++i;
      continue;
    }
    start_frame(receives_.emplace_back(new_receives_[i]), transport);
    new_receives_.erase(new_receives_.begin() + static_cast<std::ptrdiff_t>(i));
    any = true;
  }
  return any;
}

// A machine may post new receives while it handles one; those are tested in the same pass.
bool ProtocolDriver::finish_receives(Transport& transport) {
  bool moved = false;
  for (std::size_t i = 0; i < receives_.size() && !finished_;) {
    Receive& receive = receives_[i];
    const std::optional<Completion> completion = transport.test(receive.request);
    if (!completion) {
      ++i;
      continue;
    }
    moved = true;
    receive.arrived += completion->bytes;
    if (peer_times_place.times)
      peer_times_place.received(completion->peer, completion->bytes, receive.since_s, transport.clock().now_s());
    if (completion->bytes == frame_bytes_) {
      receive.peer = completion->peer;
      start_frame(receive, transport);
      continue;
    }
    const ProtocolEvent event{.kind = ProtocolEvent::Kind::received,
                              .token = receive.token,
                              .peer = completion->peer,
                              .bytes = receive.arrived};
    receives_.erase(receives_.begin() + static_cast<std::ptrdiff_t>(i));
    deliver(event);
    start_receives(transport);
  }
  return moved;
}

bool ProtocolDriver::start_sends(Transport& transport, SendBudget& budget) {
  bool moved = false;
  while (!queued_.empty()) {
    Send& next = queued_.front();
    Send frame = next;
    frame.bytes = std::min(next.bytes, frame_bytes_);
    if (!budget.allows(frame.bytes)) break;
    frame.request = transport.isend(next.peer, next.tag, next.data, frame.bytes);
    budget.began(frame.bytes, now_s_);
    ++wire_.messages_sent;
    wire_.bytes_sent += frame.bytes;
    frame.since_s = now_s_;
    peer_times_place.sent(frame.peer, now_s_);
    sends_.push_back(frame);
    moved = true;
    next.data += frame.bytes;
    next.bytes -= frame.bytes;
    if (!in_frames(frame.bytes)) queued_.pop_front();
  }
  return moved;
}

// Whether a message is complete with this frame, because no other frame of it is in flight or queued. A short message
// has one frame, so the queue is not searched: thousands of them may be queued.
bool ProtocolDriver::all_sent(const Send& done) const {
  const auto part = [&](const Send& send) { return send.serial == done.serial; };
  return std::none_of(sends_.begin(), sends_.end(), part) &&
         (!in_frames(done.bytes) || std::none_of(queued_.begin(), queued_.end(), part));
}

bool ProtocolDriver::finish_sends(Transport& transport, SendBudget& budget) {
  bool moved = false;
  for (std::size_t i = 0; i < sends_.size();) {
    if (!transport.test(sends_[i].request)) {
      ++i;
      continue;
    }
    const Send done = sends_[i];
    if (SpanRecorder* spans = open_spans())
      spans->add({.begin_s = done.since_s,
                  .end_s = transport.clock().now_s(),
                  .bytes = static_cast<std::int64_t>(done.bytes),
                  .peer = done.peer,
                  .kind = SpanKind::send});
    budget.ended(done.bytes, now_s_);
    sends_.erase(sends_.begin() + static_cast<std::ptrdiff_t>(i));
    if (all_sent(done)) deliver({.kind = ProtocolEvent::Kind::sent, .token = done.token});
    moved = true;
  }
  return moved;
}

bool ProtocolDriver::busy() const {
  if (finished_ && sends_.empty() && queued_.empty()) return false;
  return !started_ || has_mail_.load(std::memory_order_acquire) || !posts_.empty() || !queued_.empty() ||
         !sends_.empty() || !new_receives_.empty() || !receives_.empty() || !timers_.empty();
}

double ProtocolDriver::wakes_at_s() const {
  double first = std::numeric_limits<double>::infinity();
  for (const auto& [token, at_s] : timers_) first = std::min(first, at_s);
  return first;
}

void ProtocolDriver::end(Transport& transport, SendBudget& budget, const std::exception_ptr& error) {
  const bool ended = finished_ && receives_.empty() && sends_.empty() && queued_.empty();
  finished_ = true;
  for (Send& send : sends_) {
    budget.forget(send.bytes);
    if (send.request.valid()) transport.cancel(send.request);
  }
  for (Receive& receive : receives_)
    if (receive.request.valid()) transport.cancel(receive.request);
  sends_.clear();
  receives_.clear();
  queued_.clear();
  new_receives_.clear();
  posts_.clear();
  timers_.clear();
  waits_.clear();
  if (error && !ended) host_.failed(error);
}

std::vector<ProtocolWait> ProtocolDriver::waits() const {
  std::vector<ProtocolWait> all;
  for (const auto& [token, wait] : waits_) all.push_back(wait);
  for (const Send& send : sends_)
    all.push_back({.peer = send.peer, .tag = send.tag, .step = 0, .since_s = send.since_s, .sending = true});
  return all;
}

}  // namespace echelon::inline comm
