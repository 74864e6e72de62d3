// SPDX-License-Identifier: Apache-2.0
#include "train/control/tree.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "train/control/binomial.hpp"

namespace echelon::inline train {
ControlTree::ControlTree(int rank, int ranks, int tag, std::int64_t sample_every)
    : rank_(rank), tag_(tag), sample_every_(std::max<std::int64_t>(1, sample_every)) {
  const BinomialPlace place(rank, ranks);
  parent_ = place.parent;
  for (const auto& [child, behind] : place.children) children_.push_back({child, behind, false, {}});
}

std::size_t ControlTree::up_bytes(std::size_t ranks) const {
  return sizeof(ControlSum) + (samples() ? ranks * sizeof(RankStep) : 0);
}

void ControlTree::on(const ProtocolEvent& event, ProtocolActions& actions) {
  if (event.kind == ProtocolEvent::Kind::posted) {
    if (event.token == kWords) return begin(actions);
    flushing_ = true;
    return flush(actions);
  }
  if (event.kind == ProtocolEvent::Kind::sent) {
    --sending_;
    return flush(actions);
  }
  if (event.kind != ProtocolEvent::Kind::received) return;
  actions.wait_over(event.token);
  if (event.token == kParent) return send_down(actions);
  Child& child = children_[event.token];
  ECHELON_CHECK_EQ(event.bytes, child.message.size(), "control words of rank {}", child.rank);
  child.came = true;
  merge_children(actions);
}

void ControlTree::begin(ProtocolActions& actions) {
  ++step_;
  sum_ = ControlSum::of(rank_, words_);
  behind_.assign(samples() ? 1 : 0, words_.last);
  merged_ = 0;
  for (std::size_t c = 0; c < children_.size(); ++c) {
    Child& child = children_[c];
    child.came = false;
    child.message.resize(up_bytes(child.behind));
    actions.receive(c, child.rank, tag_, child.message.data(), child.message.size());
    actions.wait_for(c, child.rank, tag_, step_);
  }
  merge_children(actions);
}

// Merges in the order of the tree, whatever the order of arrival.
void ControlTree::merge_children(ProtocolActions& actions) {
  for (; merged_ < children_.size(); ++merged_) {
    const Child& child = children_[merged_];
    if (!child.came) return;
    ControlSum of_child;
    std::memcpy(&of_child, child.message.data(), sizeof of_child);
    sum_ = sum_.merged(of_child);
    if (!samples()) continue;
    const std::size_t before = behind_.size();
    behind_.resize(before + child.behind);
    std::memcpy(&behind_[before], child.message.data() + sizeof of_child, child.behind * sizeof(RankStep));
  }
  if (parent_ >= 0) return send_up(actions);
  total_ = sum_;
  times_ = behind_;
  send_down(actions);
}

void ControlTree::send(std::size_t to, int rank, int tag, const void* data, std::size_t bytes,
                       ProtocolActions& actions) {
  ++sending_;
  actions.send(to, rank, tag, data, bytes, kAheadOfAll);
}

void ControlTree::send_up(ProtocolActions& actions) {
  std::vector<std::byte>& message = up_[step_ % 2];
  message.resize(up_bytes(behind_.size()));
  std::memcpy(message.data(), &sum_, sizeof sum_);
  if (samples()) std::memcpy(message.data() + sizeof sum_, behind_.data(), behind_.size() * sizeof(RankStep));
  send(kParent, parent_, tag_, message.data(), message.size(), actions);
  actions.receive(kParent, parent_, tag_ + 1, &total_, sizeof total_);
  actions.wait_for(kParent, parent_, tag_ + 1, step_);
}

// The farthest first: it has most ranks behind it.
void ControlTree::send_down(ProtocolActions& actions) {
  down_[step_ % 2] = total_;
  for (std::size_t c = children_.size(); c-- > 0;)
    send(c, children_[c].rank, tag_ + 1, &down_[step_ % 2], sizeof total_, actions);
  actions.notify_host(kSum);
}

void ControlTree::flush(ProtocolActions& actions) {
  if (!flushing_ || sending_ > 0) return;
  flushing_ = false;
  actions.notify_host(kFlushed);
}

}  // namespace echelon::inline train
