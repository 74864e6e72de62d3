// SPDX-License-Identifier: Apache-2.0
#include "job/loss_watch.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace echelon::inline job {
namespace {

constexpr Token kTick = 0;         // the only timer
constexpr double kSleptTicks = 2;  // a tick later than this: the rank did not run
constexpr int kTicksToLeave = 3;

}  // namespace

LossWatch::LossWatch(int rank, std::vector<int> hosts, double timeout_s)
    : rank_(rank), hosts_(std::move(hosts)), timeout_s_(timeout_s), fates_(hosts_.size(), Fate::lives) {
  in_.resize(kHeader + fates_.size());
}

double LossWatch::interval_s() const { return std::clamp(timeout_s_ / 10, 0.02, 10.0); }

int LossWatch::lowest_living() const {
  return static_cast<int>(std::find(fates_.begin(), fates_.end(), Fate::lives) - fates_.begin());
}

void LossWatch::on(const ProtocolEvent& event, ProtocolActions& actions) {
  using Event = ProtocolEvent::Kind;
  actions_ = &actions;
  switch (event.kind) {
    case Event::started:
      tick_s_ = event.now_s;
      actions.receive(0, kAnySource, kTag, in_.data(), in_.size());
      actions.arm(kTick, event.now_s + interval_s());
      beat();
      break;
    case Event::posted: lose(static_cast<int>(event.token), Fate::gone); break;
    case Event::sent: out_.erase(event.token); break;
    case Event::received:
      received(event.peer, event.bytes);
      actions.receive(0, kAnySource, kTag, in_.data(), in_.size());
      break;
    case Event::timer:
      actions.arm(kTick, event.now_s + interval_s());
      tick(event.now_s);
      break;
  }
  if (phase_ == Phase::decided) settle();
}

void LossWatch::tick(double now_s) {
  const double passed_s = now_s - tick_s_;
  tick_s_ = now_s;
  const bool slept = passed_s > kSleptTicks * interval_s();
  awake_s_ += slept ? interval_s() : passed_s;
  if (phase_ == Phase::decided) --ticks_left_;
  if (phase_ == Phase::decided || phase_ == Phase::over) return;
  const int before = (rank_ + ranks() - 1) % ranks();
  beat();
  if (slept && phase_ == Phase::leading) lead();
  if (slept) phase_ends_s_ = awake_s_ + 2 * grace_s();
  if (lives(before) && before != rank_ && awake_s_ - heard_s_ > timeout_s_) return lose(before, Fate::silent);
  if (phase_ == Phase::calm || awake_s_ < phase_ends_s_) return;
  if (phase_ == Phase::following) return lose(lowest_living(), Fate::silent);
  for (int rank = 0; rank < ranks(); ++rank)
    if (lives(rank) && !answered_[static_cast<std::size_t>(rank)])
      fates_[static_cast<std::size_t>(rank)] = Fate::silent;
  conclude();
}

void LossWatch::received(int from, std::size_t bytes) {
  if (from == (rank_ + ranks() - 1) % ranks()) heard_s_ = awake_s_;
  const Kind kind = static_cast<Kind>(in_[0]);
  if (kind == Kind::beat) return;
  ECHELON_CHECK_EQ(bytes, in_.size(), "a message about lost ranks, from rank {}", from);
  if (phase_ == Phase::decided || phase_ == Phase::over) return;
  if (kind == Kind::verdict || kind == Kind::verdict_of_few) {
    std::transform(in_.begin() + kHeader, in_.end(), fates_.begin(),
                   [](std::byte fate) { return static_cast<Fate>(fate); });
    return decide(kind == Kind::verdict);
  }
  if (!lives(from)) return;  // it was given up and will get the verdict
  const bool news = merge(in_);
  if (kind == Kind::asks) {
    if (from != lowest_living()) return;
    phase_ = Phase::following;
    phase_ends_s_ = awake_s_ + 2 * grace_s();  // waiting time of the leader, and transit time of its verdict
    return send(from, Kind::knows, in_[1]);
  }
  if (phase_ != Phase::leading && lowest_living() == rank_) lead();
  if (phase_ == Phase::leading) {
    if (in_[1] == question_) answered_[static_cast<std::size_t>(from)] = 1;
    return conclude_if_all_answered();
  }
  if (news) follow_or_lead();
}

// Returns true if the message knew of more losses. Ignores what others believe of this rank.
bool LossWatch::merge(const Message& message) {
  bool news = false;
  for (int rank = 0; rank < ranks(); ++rank) {
    Fate& fate = fates_[static_cast<std::size_t>(rank)];
    const Fate told = static_cast<Fate>(message[kHeader + static_cast<std::size_t>(rank)]);
    if (rank == rank_ || told <= fate) continue;
    news |= fate == Fate::lives;
    fate = told;
  }
  return news;
}

void LossWatch::lose(int rank, Fate fate) {
  if (phase_ == Phase::decided || phase_ == Phase::over || rank == rank_) return;
  Fate& known = fates_[static_cast<std::size_t>(rank)];
  if (fate <= known) return;
  const bool news = known == Fate::lives;
  known = fate;
  if (news) follow_or_lead();
}

void LossWatch::follow_or_lead() {
  const int leader = lowest_living();
  if (leader == rank_) return phase_ == Phase::leading ? conclude_if_all_answered() : lead();
  phase_ = Phase::following;
  phase_ends_s_ = awake_s_ + grace_s();
  send(leader, Kind::knows);
}

void LossWatch::lead() {
  phase_ = Phase::leading;
  phase_ends_s_ = awake_s_ + grace_s();
  answered_.assign(fates_.size(), 0);
  answered_[static_cast<std::size_t>(rank_)] = 1;
  question_ = static_cast<std::byte>(static_cast<int>(question_) % 255 + 1);
  send_to_others(Kind::asks, true);
  conclude_if_all_answered();
}

void LossWatch::conclude_if_all_answered() {
  for (int rank = 0; rank < ranks(); ++rank)
    if (lives(rank) && !answered_[static_cast<std::size_t>(rank)]) return;
  conclude();
}

void LossWatch::conclude() { decide(may_go_on()); }

bool LossWatch::may_go_on() const {
  const auto has_living = [&](int host) {
    for (int rank = 0; rank < ranks(); ++rank)
      if (lives(rank) && hosts_[static_cast<std::size_t>(rank)] == host) return true;
    return false;
  };
  int living = 0, unknown = 0, lowest_unknown = ranks();
  for (int rank = 0; rank < ranks(); ++rank) {
    if (lives(rank)) ++living;
    if (fates_[static_cast<std::size_t>(rank)] != Fate::silent || has_living(hosts_[static_cast<std::size_t>(rank)]))
      continue;
    ++unknown;
    lowest_unknown = std::min(lowest_unknown, rank);
  }
  return living > unknown || (living == unknown && lowest_living() < lowest_unknown);
}

// Sends nothing to processes that are gone, because some networks report an error for such messages.
void LossWatch::decide(bool goes_on) {
  phase_ = Phase::decided;
  ticks_left_ = kTicksToLeave;
  verdict_.goes_on = goes_on;
  for (int rank = 0; rank < ranks(); ++rank)
    if (!lives(rank)) verdict_.lost.push_back(rank);
  if (lives(rank_)) send_to_others(goes_on ? Kind::verdict : Kind::verdict_of_few, false);
}

// Notifies the host once the verdict has been sent, because the engine then stops.
void LossWatch::settle() {
  if (!out_.empty() && ticks_left_ > 0 && lives(rank_)) return;
  phase_ = Phase::over;
  actions_->notify_host(kDecided);
}

void LossWatch::send(int peer, Kind kind, std::byte question) {
  if (peer == rank_ || fates_[static_cast<std::size_t>(peer)] == Fate::gone) return;
  Message message = {static_cast<std::byte>(kind)};
  if (kind != Kind::beat) {
    message.push_back(kind == Kind::asks ? question_ : question);
    for (const Fate fate : fates_) message.push_back(static_cast<std::byte>(fate));
  }
  const Message& kept = out_[next_send_] = std::move(message);
  actions_->send(next_send_++, peer, kTag, kept.data(), kept.size(), -1);
}

// Sends one beat at a time, even if the successor takes none.
void LossWatch::beat() {
  if (out_.contains(beat_)) return;
  beat_ = next_send_;
  send((rank_ + 1) % ranks(), Kind::beat);
}

void LossWatch::send_to_others(Kind kind, bool living_alone) {
  for (int rank = 0; rank < ranks(); ++rank)
    if (!living_alone || lives(rank)) send(rank, kind);
}

}  // namespace echelon::inline job
