// SPDX-License-Identifier: Apache-2.0
#include "train/control/news.hpp"

#include "train/control/binomial.hpp"

namespace echelon::inline train {
namespace {

enum Way : std::uint8_t { kUp, kDown };

}  // namespace

StepNews::StepNews(int rank, int ranks, int tag, double interval_s) : tag_(tag), least_s_(interval_s / 2) {
  const BinomialPlace place(rank, ranks);
  parent_ = place.parent;
  for (const auto& [child, behind] : place.children) children_.push_back(child);
}

void StepNews::on(const ProtocolEvent& event, ProtocolActions& actions) {
  const auto hear = [&](std::size_t c) { actions.receive(c, children_[c], tag_, &nothing_, 0); };
  const auto listen = [&] { actions.receive(kParent, parent_, tag_ + 1, &nothing_, 0); };
  switch (event.kind) {
    case ProtocolEvent::Kind::started:
      for (std::size_t c = 0; c < children_.size(); ++c) hear(c);
      if (parent_ >= 0) listen();
      return;
    case ProtocolEvent::Kind::posted: return pass_up(event.now_s, actions);
    case ProtocolEvent::Kind::sent: --under_way_[event.token == kParent ? kUp : kDown]; return;
    case ProtocolEvent::Kind::received:
      if (event.token != kParent) {
        hear(event.token);
        return pass_up(event.now_s, actions);
      }
      listen();
      return pass_down(event.now_s, actions);
    case ProtocolEvent::Kind::timer: return;
  }
}

void StepNews::pass_up(double now_s, ProtocolActions& actions) {
  if (parent_ < 0) return pass_down(now_s, actions);
  if (under_way_[kUp] > 0 || (passed_s_[kUp] >= 0 && now_s - passed_s_[kUp] < least_s_)) return;
  passed_s_[kUp] = now_s;
  ++under_way_[kUp];
  actions.send(kParent, parent_, tag_, &nothing_, 0, kAheadOfAll);
}

void StepNews::pass_down(double now_s, ProtocolActions& actions) {
  actions.notify_host(kHeard);
  if (under_way_[kDown] > 0 || (passed_s_[kDown] >= 0 && now_s - passed_s_[kDown] < least_s_)) return;
  passed_s_[kDown] = now_s;
  for (std::size_t c = children_.size(); c-- > 0; ++under_way_[kDown])
    actions.send(c, children_[c], tag_ + 1, &nothing_, 0, kAheadOfAll);
}

}  // namespace echelon::inline train
