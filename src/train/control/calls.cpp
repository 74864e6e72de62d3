// SPDX-License-Identifier: Apache-2.0
#include "train/control/calls.hpp"

#include <algorithm>
#include <cstring>

#include "train/control/binomial.hpp"

namespace echelon::inline train {
namespace {

constexpr Token kReportTimer = 0;  // the only timer
constexpr double kReportsAStep = 2;

}  // namespace

bool Report::has_news_beside_weight(const Report& other) const {
  Report as_heavy = other;
  as_heavy.weight = weight;
  return as_heavy != *this;
}

Report Report::merged(const Report& other) const {
  Report all;
  all.weight = weight + other.weight;
  all.finished = finished + other.finished;
  all.not_finite_rank = not_finite_rank < 0         ? other.not_finite_rank
                        : other.not_finite_rank < 0 ? not_finite_rank
                                                    : std::min(not_finite_rank, other.not_finite_rank);
  all.meetings = std::max(meetings, other.meetings);
  const int mine = meetings == all.meetings ? static_cast<int>(wishes) : 0;
  const int its = other.meetings == all.meetings ? static_cast<int>(other.wishes) : 0;
  all.wishes = mine | its;
  return all;
}

ControlCalls::ControlCalls(int rank, int ranks, int tag) : ranks_(ranks), tag_(tag) {
  const BinomialPlace place(rank, ranks);
  parent_ = place.parent;
  for (const auto& [child, behind] : place.children) children_.push_back({.rank = child, .newest = {}, .incoming = {}});
}

void ControlCalls::report(const Report& totals, const MeetingWeights& weights) {
  const std::lock_guard lock(mutex_);
  given_ = totals;
  given_weights_ = weights;
}

void ControlCalls::on(const ProtocolEvent& event, ProtocolActions& actions) {
  const auto hear = [&](std::size_t c) {
    actions.receive(c, children_[c].rank, tag_, &children_[c].incoming, sizeof(Report));
  };
  const auto listen = [&] { actions.receive(kParent, parent_, tag_ + 1, &incoming_, sizeof incoming_); };
  switch (event.kind) {
    case ProtocolEvent::Kind::started:
      for (std::size_t c = 0; c < children_.size(); ++c) hear(c);
      if (parent_ >= 0) listen();
      return;
    case ProtocolEvent::Kind::posted: {
      const std::lock_guard lock(mutex_);
      own_ = given_;
      weights_ = given_weights_;
    }
      note_step(event.now_s);
      return look(event.now_s, actions);
    case ProtocolEvent::Kind::sent:
      if (event.token != kParent) return;
      sending_ = false;
      return look(event.now_s, actions);
    case ProtocolEvent::Kind::received:
      if (event.token == kParent) {
        call_ = incoming_;
        pass_on(actions);
        return ended() ? look(event.now_s, actions) : listen();
      }
      children_[event.token].newest = children_[event.token].incoming;
      if (children_[event.token].newest.closed == 0) hear(event.token);
      return look(event.now_s, actions);
    case ProtocolEvent::Kind::timer: return look(event.now_s, actions);
  }
}

// A post ends a step, or comes with a meeting: the shorter of two pauses is no longer than a step, whatever else the
// rank did before one of them.
void ControlCalls::note_step(double now_s) {
  if (posted_s_ >= 0) {
    pauses_s_[0] = pauses_s_[1];
    pauses_s_[1] = now_s - posted_s_;
  }
  posted_s_ = now_s;
}

// Once all links from below are closed.
void ControlCalls::close(ProtocolActions& actions) {
  for (const Child& child : children_)
    if (child.newest.closed == 0) return;
  if (parent_ < 0 || closed_) return actions.finish();
  closed_ = sending_ = true;
  sent_.closed = 1;
  actions.send(kParent, parent_, tag_, &sent_, sizeof sent_, kAheadOfAll);
}

// Sends a newer report, or calls a meeting.
void ControlCalls::look(double now_s, ProtocolActions& actions) {
  if (ended()) {
    if (!sending_) close(actions);
    return;
  }
  Report totals = own_;
  for (const Child& child : children_) totals = totals.merged(child.newest);
  if (parent_ >= 0) {
    if (sending_ || (sent_any_ && totals == sent_)) return;
    const double due_s = sent_s_ + std::min(pauses_s_[0], pauses_s_[1]) / kReportsAStep;
    if (sent_any_ && now_s < due_s && !sent_.has_news_beside_weight(totals)) return actions.arm(kReportTimer, due_s);
    sending_ = sent_any_ = true;
    sent_s_ = now_s;
    sent_ = totals;
    actions.send(kParent, parent_, tag_, &sent_, sizeof sent_, kAheadOfAll);
    return;
  }
  if (static_cast<double>(call_.number) > own_.meetings) return;  // the last one is still to be attended here
  const std::uint32_t reasons = reasons_of(totals);
  if (reasons == 0) return;
  call_ = {call_.number + 1, reasons};
  pass_on(actions);
  if (ended()) close(actions);
}

std::uint32_t ControlCalls::reasons_of(const Report& totals) const {
  std::uint32_t reasons = 0;
  // Wishes of ranks that attended fewer meetings were answered by the last one.
  if (totals.wishes != 0 && totals.meetings == own_.meetings) reasons |= kMeetingWish;
  const bool all_finished = static_cast<int>(totals.finished) == ranks_;
  const bool epoch_over = weights_.epoch > 0 && totals.weight >= weights_.epoch && (all_finished || !weights_.last);
  if (epoch_over) reasons |= kMeetingEpoch;
  if (weights_.join > 0 && totals.weight >= weights_.join) reasons |= kMeetingJoin;
  if (all_finished && (!epoch_over || weights_.last))
    reasons |= kMeetingEnd;  // other epochs have meetings of their own
  if (totals.not_finite_rank >= 0) reasons |= kMeetingNotFinite;
  return reasons;
}

// The farthest first: it has most ranks behind it.
void ControlCalls::pass_on(ProtocolActions& actions) {
  MeetingCall& message = down_[call_.number % 2];
  message = call_;
  for (std::size_t c = children_.size(); c-- > 0;)
    actions.send(c, children_[c].rank, tag_ + 1, &message, sizeof message, kAheadOfAll);
  actions.notify_host(kCall);
}

}  // namespace echelon::inline train
