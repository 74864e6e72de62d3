// SPDX-License-Identifier: Apache-2.0
#include "exchange/strom/exchange.hpp"

#include <utility>

#include "base/clock.hpp"
#include "base/spans.hpp"

namespace echelon::inline exchange {
namespace {

using Word = StromProtocol::Word;

}  // namespace

StromExchange::StromExchange(Engine& engine, const StromTraffic& traffic, Apply apply)
    : engine_(engine),
      asynchronous_(traffic.asynchronous),
      apply_(std::move(apply)),
      protocol_(engine.rank(), engine.size(), traffic),
      buckets_(traffic.rooms.size()) {}

void StromExchange::attach() {
  if (!attachment_) attachment_ = engine_.attach(protocol_, *this);
}

bool StromExchange::has_slot(std::size_t b) const {
  const std::lock_guard lock(mutex_);
  return !asynchronous_ || buckets_[b].free > 0;
}

void StromExchange::send(std::size_t b, std::size_t bytes) {
  Bucket& bucket = buckets_[b];
  {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    bucket.begun_s = engine_.clock().now_s();
    if (asynchronous_) {
      --bucket.free;
    } else {
      bucket.promise = engine_.promise();
      bucket.ticket = bucket.promise.ticket();
    }
  }
  attachment_->post(protocol_.commit(static_cast<int>(b), bytes));
}

void StromExchange::finish_round(std::size_t b, StromMessage own, StepAccount& account) {
  Bucket& bucket = buckets_[b];
  {
    const SpanTimer timer(account.outcome().exchange_wait_s, SpanKind::exchange_wait);
    bucket.ticket.wait();
  }
  account.note(bucket.ticket, static_cast<std::int64_t>(b));
  bucket.ticket = {};
  const SpanTimer timer(account.outcome().optimiser_s, SpanKind::optimiser);
  std::deque<Arrival> round(static_cast<std::size_t>(engine_.size()));
  {
    // Faster replicas may already have sent messages of the next round.
    const std::lock_guard lock(mutex_);
    std::deque<Arrival> later;
    for (const Arrival& arrival : bucket.arrived) {
      Arrival& of_origin = round[static_cast<std::size_t>(arrival.origin)];
      if (of_origin.message.empty())
        of_origin = arrival;
      else
        later.push_back(arrival);
    }
    bucket.arrived = std::move(later);
  }
  round[static_cast<std::size_t>(engine_.rank())] = {engine_.rank(), own};
  for (const Arrival& arrival : round) apply_(b, arrival.message);
  give_back(b, round);
}

bool StromExchange::apply_arrived() {
  bool any = false;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const std::deque<Arrival> arrived = take_arrived(b);
    for (const Arrival& arrival : arrived) apply_(b, arrival.message);
    give_back(b, arrived);
    any = any || !arrived.empty();
  }
  return any;
}

std::deque<StromExchange::Arrival> StromExchange::take_arrived(std::size_t b) {
  const std::lock_guard lock(mutex_);
  return std::exchange(buckets_[b].arrived, {});
}

void StromExchange::give_back(std::size_t b, const std::deque<Arrival>& applied) {
  for (const Arrival& arrival : applied)
    if (arrival.origin != engine_.rank())
      attachment_->post(StromProtocol::token(Word::taken, static_cast<int>(b), arrival.origin));
}

void StromExchange::come_to_meeting() {
  std::vector<std::deque<Arrival>> arrived(buckets_.size());
  {
    const std::lock_guard lock(mutex_);  // later messages are applied by the thread that drives the engine
    if (error_) std::rethrow_exception(error_);
    at_meeting_ = true;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      arrived[b] = std::exchange(buckets_[b].arrived, {});
      for (const Arrival& arrival : arrived[b]) apply_(b, arrival.message);
    }
    meet_ = engine_.promise();
    meeting_ = meet_.ticket();
  }
  for (std::size_t b = 0; b < buckets_.size(); ++b) give_back(b, arrived[b]);
  attachment_->post(protocol_.meet());
}

bool StromExchange::leave_meeting() {
  if (!meeting_.valid()) return false;
  std::exchange(meeting_, {}).wait();
  return true;
}

WireCounters StromExchange::take_sent() {
  const std::lock_guard lock(mutex_);
  return std::exchange(sent_, {});
}

void StromExchange::on_notified(Token token, double now_s) {
  const std::lock_guard lock(mutex_);
  const int bucket = StromProtocol::bucket_of(token), origin = StromProtocol::origin_of(token);
  const auto b = static_cast<std::size_t>(bucket);
  sent_ += protocol_.take_sent();
  switch (StromProtocol::word_of(token)) {
    case Word::arrived:
      if (!at_meeting_) return buckets_[b].arrived.push_back({origin, protocol_.newest(bucket, origin)});
      apply_(b, protocol_.newest(bucket, origin));
      return protocol_.take(bucket, origin);
    case Word::freed: ++buckets_[b].free; return;
    case Word::gathered: buckets_[b].promise.fulfil(buckets_[b].begun_s, now_s, std::exchange(sent_, {})); return;
    case Word::met:
      at_meeting_ = false;
      meet_.fulfil(now_s, now_s, {});
      return;
    default: return;
  }
}

void StromExchange::failed(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = error;
  const double now_s = engine_.clock().now_s();
  for (Bucket& bucket : buckets_)
    if (bucket.promise.pending()) bucket.promise.fail(error, now_s);
  if (meet_.pending()) meet_.fail(error, now_s);
}

}  // namespace echelon::inline exchange
