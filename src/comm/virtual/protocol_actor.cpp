#include "comm/virtual/protocol_actor.hpp"

#include <algorithm>
#include <limits>

namespace echelon::inline comm {

ProtocolActor::ProtocolActor(std::unique_ptr<Transport> transport, Machine& machine, ProtocolHost& host,
                             std::function<bool()> over, int sends, std::size_t frame_bytes)
    : transport_(std::move(transport)), driver_(machine, host, frame_bytes), over_(std::move(over)), budget_(sends) {}

ProtocolActor::~ProtocolActor() { driver_.end(*transport_, budget_); }

// As the engine does: where nothing moves, one send more than the budget may go.
bool ProtocolActor::pass() {
  bool moved = false;
  while (!plans_.empty() && plans_.begin()->first <= now_s()) {
    const auto what = std::move(plans_.begin()->second);
    plans_.erase(plans_.begin());
    what();
    moved = true;
  }
  moved |= driver_.pass(*transport_, budget_);
  if (moved) {
    budget_.idle(0);
  } else if (budget_.used_up()) {
    budget_.idle(1);
    moved = driver_.pass(*transport_, budget_);
  }
  return moved;
}

double ProtocolActor::wakes_at_s() const {
  const double planned_s = plans_.empty() ? std::numeric_limits<double>::infinity() : plans_.begin()->first;
  return std::min({planned_s, driver_.wakes_at_s(), transport_->wakes_at_s()});
}

}  // namespace echelon::inline comm
