// SPDX-License-Identifier: Apache-2.0
#include "planner/card_queue.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace echelon::inline planner {
namespace {

constexpr double kLeast_s = 1e-12;
constexpr double kNever = std::numeric_limits<double>::infinity();

struct Under {  // a transfer under way
  std::size_t stage = 0;
  double ready_s = 0, left_s = 0;
  double held_s = -1;  // time for messages of interrupted transfers; below 0: not yet in front
  bool over = false;
};

class Queue {
 public:
  Queue(const std::vector<CardTransfer>& transfers, bool by_priority) : all_(transfers), by_priority_(by_priority) {
    for (const CardTransfer& transfer : all_) {
      under_.push_back({.ready_s = transfer.ready_s});
      enter(under_.size() - 1);
      for (const Stage& stage : transfer.stages) cards_ = std::max(cards_, stage.card + 1);
    }
  }

  std::vector<double> run() {
    std::vector<double> ends(all_.size());
    double now_s = 0;
    for (;;) {
      double next_s = kNever;
      std::vector<std::size_t> served(static_cast<std::size_t>(cards_), all_.size());
      for (std::size_t t = 0; t < all_.size(); ++t) {
        if (under_[t].over) continue;
        if (under_[t].ready_s > now_s) {
          next_s = std::min(next_s, under_[t].ready_s);
          continue;
        }
        std::size_t& best = served[card(t)];
        if (best == all_.size() || before(t, best)) best = t;
      }
      const std::vector<std::size_t> fronts = served;
      for (std::size_t& t : served)
        if (t < all_.size()) next_s = std::min(next_s, now_s + served_for(t, now_s));
      if (next_s == kNever) break;
      for (std::size_t card = 0; card < served.size(); ++card) {
        if (served[card] == all_.size()) continue;
        if (served[card] != fronts[card]) {
          double& held_s = under_[fronts[card]].held_s;
          held_s = std::max(0.0, held_s - (next_s - now_s));
        }
        serve(served[card], now_s, next_s, ends[served[card]]);
      }
      now_s = next_s;
    }
    return ends;
  }

 private:
  std::size_t card(std::size_t t) const { return static_cast<std::size_t>(all_[t].stages[under_[t].stage].card); }
  bool before(std::size_t a, std::size_t b) const {
    if (by_priority_ && all_[a].priority != all_[b].priority) return all_[a].priority < all_[b].priority;
    return under_[a].ready_s < under_[b].ready_s;
  }
  // Returns the transfer that the card serves next after `front`: while `front` waits for its messages, the card serves
  // it.
  std::size_t held_back_by(std::size_t front, double now_s) const {
    std::size_t next = all_.size();
    for (std::size_t t = 0; t < all_.size(); ++t)
      if (t != front && !under_[t].over && under_[t].ready_s <= now_s && card(t) == card(front) &&
          all_[t].priority > all_[front].priority && (next == all_.size() || before(t, next)))
        next = t;
    return next;
  }
  // Returns the seconds for which the card serves `front`, or the transfer that replaces it while it waits for its
  // messages.
  double served_for(std::size_t& front, double now_s) {
    if (!by_priority_) return under_[front].left_s;
    const std::size_t other = held_back_by(front, now_s);
    Under& first = under_[front];
    const auto stage = [&](std::size_t t) -> const Stage& { return all_[t].stages[under_[t].stage]; };
    if (first.held_s < 0) first.held_s = other < all_.size() ? stage(front).hops * stage(other).piece_s : 0;
    if (first.held_s < kLeast_s || other == all_.size()) return first.left_s;
    front = other;
    return std::min(first.held_s, under_[other].left_s);
  }
  void enter(std::size_t t) {
    under_[t].held_s = -1;
    under_[t].over = under_[t].stage == all_[t].stages.size();
    if (!under_[t].over) under_[t].left_s = all_[t].stages[under_[t].stage].busy_s;
  }
  void serve(std::size_t t, double now_s, double next_s, double& end_s) {
    under_[t].left_s -= next_s - now_s;
    if (under_[t].left_s > 1e-15 * next_s) return;
    end_s = under_[t].ready_s = next_s + all_[t].stages[under_[t].stage].latency_s;
    ++under_[t].stage;
    enter(t);
  }

  const std::vector<CardTransfer>& all_;
  bool by_priority_;
  std::vector<Under> under_;
  int cards_ = 0;
};

// Returns when the weights of each bucket have arrived, counted from the beginning of back-propagation.
std::vector<double> weights_there(const StepShape& shape, const std::vector<OverlapBucket>& buckets, Waits waits,
                                  bool by_priority, double gate_s) {
  std::vector<CardTransfer> transfers;
  for (std::size_t b = 0; b < buckets.size(); ++b)
    transfers.push_back({.ready_s = shape.backward_s * (waits == Waits::none ? 1 : buckets[b].ready),
                         .priority = static_cast<int>(buckets.size() - b),
                         .stages = buckets[b].stages});
  if (waits != Waits::barrier) return ends_of(transfers, by_priority);
  std::vector<CardTransfer> pulls = transfers;
  for (std::size_t b = 0; b < buckets.size(); ++b)
    pulls[b].stages = {transfers[b].stages.back()}, transfers[b].stages.pop_back();
  double all_s = shape.backward_s;
  for (const double end_s : ends_of(transfers, by_priority)) all_s = std::max(all_s, end_s);
  for (CardTransfer& pull : pulls) pull.ready_s = all_s + gate_s;
  return ends_of(pulls, by_priority);
}

// Seconds from step to step if overlap hides all that it can.
double hiding_s(const StepShape& shape, const std::vector<OverlapBucket>& buckets, Waits waits, bool by_priority,
                double gate_s) {
  const std::vector<double> there_s = weights_there(shape, buckets, waits, by_priority, gate_s);
  double now_s = shape.backward_s;
  if (waits == Waits::none || waits == Waits::buckets) {
    for (std::size_t b = 0; b < buckets.size(); ++b)
      now_s = std::max(now_s, there_s[b]) + shape.optimiser_s * buckets[b].share;
    return now_s + shape.before_s + shape.forward_s;
  }
  now_s += shape.before_s;
  // The forward pass reads buckets in the reverse of the order in which back-propagation finishes them.
  double read = 0;
  for (std::size_t b = buckets.size(); b-- > 0;) {
    now_s += shape.forward_s * std::max(0.0, buckets[b].needed - read);
    read = std::max(read, buckets[b].needed);
    now_s = std::max(now_s, there_s[b]) + shape.optimiser_s * buckets[b].share;
  }
  return now_s + shape.forward_s * (1 - read);
}

}  // namespace

std::vector<double> ends_of(const std::vector<CardTransfer>& transfers, bool by_priority) {
  return Queue(transfers, by_priority).run();
}

double period_s(const StepShape& shape, const std::vector<OverlapBucket>& buckets, Waits waits, bool by_priority,
                double gate_s) {
  const double hiding = hiding_s(shape, buckets, waits, by_priority, gate_s);
  if (waits == Waits::none || shape.overlap == 1) return hiding;
  return std::lerp(std::max(hiding, hiding_s(shape, buckets, Waits::none, by_priority, gate_s)), hiding, shape.overlap);
}

}  // namespace echelon::inline planner
