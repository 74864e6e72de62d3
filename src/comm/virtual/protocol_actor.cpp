// SPDX-License-Identifier: Apache-2.0
#include "comm/virtual/protocol_actor.hpp"

#include <algorithm>
#include <limits>

namespace echelon::inline comm {

ProtocolActor::ProtocolActor(std::unique_ptr<Transport> transport, Machine& machine, ProtocolHost& host,
                             std::function<bool()> over, int sends, std::size_t frame_bytes, double short_bytes)
    : transport_(std::move(transport)),
      driver_(machine, host, frame_bytes),
      budget_(sends, short_bytes),
      over_(std::move(over)) {}

ProtocolActor::~ProtocolActor() { driver_.end(*transport_, budget_); }

// As in the engine, one send beyond the budget may start if nothing moved for long enough.
bool ProtocolActor::pass() {
  bool moved = false;
  while (!plans_.empty() && plans_.begin()->first <= now_s()) {
    const auto what = std::move(plans_.begin()->second);
    plans_.erase(plans_.begin());
    what();
    moved = true;
  }
  budget_.idle(now_s() - moved_s_);
  moved |= driver_.pass(*transport_, budget_);
  if (moved) moved_s_ = now_s();
  return moved;
}

double ProtocolActor::wakes_at_s() const {
  constexpr double kBehind_s = 1e-9;
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const double planned_s = plans_.empty() ? kNever : plans_.begin()->first;
  const double let_through_s = driver_.sends_wait() ? moved_s_ + budget_.patience_s() + kBehind_s : kNever;
  return std::min({planned_s, let_through_s, driver_.wakes_at_s(), transport_->wakes_at_s()});
}

}  // namespace echelon::inline comm
