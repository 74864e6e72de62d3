#include "comm/protocol/driver.hpp"

#include <algorithm>
#include <limits>

#include "base/clock.hpp"
#include "base/spans.hpp"

namespace echelon::inline comm {

void ProtocolDriver::post(Token token, std::shared_ptr<const Event> after) {
  const std::lock_guard lock(mutex_);
  inbox_.push_back({token, std::move(after)});
  has_mail_.store(true, std::memory_order_release);
}

void ProtocolDriver::send(Token token, int peer, int tag, const void* data, std::size_t bytes, int priority) {
  const auto at = std::upper_bound(queued_.begin(), queued_.end(), priority,
                                   [](int p, const Send& other) { return p < other.priority; });
  queued_.insert(at, {token, peer, tag, data, bytes, priority, {}});
}

void ProtocolDriver::receive(Token token, int peer, int tag, void* data, std::size_t room) {
  new_receives_.push_back({token, peer, tag, data, room, {}});
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

// A timer that is armed again while it is handled fires in a later pass.
bool ProtocolDriver::deliver_timers() {
  due_.clear();
  for (const auto& [token, at_s] : timers_)
    if (at_s <= now_s_) due_.push_back(token);
  bool moved = false;
  for (const Token token : due_) {
    if (timers_.erase(token) == 0) continue;  // disarmed by one before it
    deliver({.kind = ProtocolEvent::Kind::timer, .token = token});
    moved = true;
  }
  return moved;
}

bool ProtocolDriver::start_receives(Transport& transport) {
  const bool any = !new_receives_.empty();
  for (; !new_receives_.empty(); new_receives_.pop_front()) {
    Receive& next = new_receives_.front();
    next.request = transport.irecv(next.peer, next.tag, next.data, next.room);
    receives_.push_back(next);
  }
  return any;
}

// A machine posts new receives while it handles one; those are looked at in the same pass.
bool ProtocolDriver::finish_receives(Transport& transport) {
  bool moved = false;
  for (std::size_t i = 0; i < receives_.size() && !finished_;) {
    Receive& receive = receives_[i];
    const std::optional<Completion> completion = transport.test(receive.request);
    if (!completion) {
      ++i;
      continue;
    }
    const Token token = receive.token;
    receives_.erase(receives_.begin() + static_cast<std::ptrdiff_t>(i));
    deliver(
        {.kind = ProtocolEvent::Kind::received, .token = token, .peer = completion->peer, .bytes = completion->bytes});
    moved = true;
    start_receives(transport);
  }
  return moved;
}

bool ProtocolDriver::start_sends(Transport& transport, SendBudget& budget) {
  bool moved = false;
  for (; !queued_.empty() && budget.allows(queued_.front().bytes); queued_.pop_front()) {
    Send& next = queued_.front();
    next.request = transport.isend(next.peer, next.tag, next.data, next.bytes);
    budget.began(next.bytes, now_s_);
    ++wire_.messages_sent;
    wire_.bytes_sent += next.bytes;
    next.since_s = now_s_;
    sends_.push_back(next);
    moved = true;
  }
  return moved;
}

bool ProtocolDriver::finish_sends(Transport& transport, SendBudget& budget) {
  bool moved = false;
  for (std::size_t i = 0; i < sends_.size();) {
    if (!transport.test(sends_[i].request)) {
      ++i;
      continue;
    }
    const Token token = sends_[i].token;
    if (SpanRecorder* spans = open_spans())
      spans->add({.begin_s = sends_[i].since_s,
                  .end_s = transport.clock().now_s(),
                  .bytes = static_cast<std::int64_t>(sends_[i].bytes),
                  .peer = sends_[i].peer,
                  .kind = SpanKind::send});
    budget.ended(sends_[i].bytes, now_s_);
    sends_.erase(sends_.begin() + static_cast<std::ptrdiff_t>(i));
    deliver({.kind = ProtocolEvent::Kind::sent, .token = token});
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
