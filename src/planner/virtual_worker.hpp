// SPDX-License-Identifier: Apache-2.0
// A rank that trains on virtual time: the compute thread of a worker, whose protocol exchanges its buckets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "comm/virtual/protocol_actor.hpp"
#include "planner/strategy_models.hpp"

namespace echelon::inline planner {

// The forward pass reads the weights of the buckets in the reverse of their order, and waits for each that is missing;
// back-propagation hands over the gradient of each bucket when it is finished. If `stepped` is set, the next step
// begins only with go_on().
class VirtualWorker {
 public:
  struct Calls {
    std::function<void(int bucket)> give;  // the gradient of a bucket is finished
    std::function<void()> ended;           // all steps are done
    std::function<void()> stepped = {};    // back-propagation has ended
  };
  VirtualWorker(const StrategySetting& setting, double optimiser_share, std::vector<double> factors, Calls calls)
      : setting_(setting),
        optimiser_share_(optimiser_share),
        factors_(std::move(factors)),
        calls_(std::move(calls)),
        there_(setting.work.buckets.size(), true) {}

  void begin(ProtocolActor& actor) {
    actor_ = &actor;
    begin_step();
  }
  // The new weights of a bucket have arrived.
  void settled(int bucket) {
    there_[static_cast<std::size_t>(bucket)] = true;
    look();
  }
  // Continues a worker that waits in `stepped` with this step; the steps before it end now. There are as many steps as
  // factors.
  void go_on(std::int64_t step) {
    ended_s_.resize(static_cast<std::size_t>(step), actor_->now_s());
    begin_step();
  }
  // The current step, or the next one.
  std::int64_t step() const { return static_cast<std::int64_t>(ended_s_.size()); }
  bool all_there() const { return std::find(there_.begin(), there_.end(), false) == there_.end(); }
  // Seconds at which the steps ended, by step.
  const std::vector<double>& ended_s() const { return ended_s_; }

 private:
  double elapsed(double seconds) const { return actor_->now_s() + seconds; }
  const GradientBucket& bucket(std::size_t b) const { return setting_.work.buckets[b]; }

  void begin_step() {
    if (ended_s_.size() == factors_.size()) return calls_.ended();
    shape_ = setting_.shape(factors_[ended_s_.size()]);
    shape_.optimiser_s *= optimiser_share_;
    read_ = 0, next_ = there_.size();
    actor_->at(elapsed(shape_.before_s), [this] { read_next(); });
  }
  void read_next() {
    const double to = next_ > 0 ? std::max(read_, bucket(next_ - 1).needed) : 1;
    const double pause_s = shape_.forward_s * (to - read_);
    read_ = to;
    actor_->at(elapsed(pause_s), [this] {
      if (next_ == 0) return back_propagate();
      waits_ = true;
      look();
    });
  }
  void look() {
    if (!waits_ || !there_[next_ - 1]) return;
    waits_ = false;
    const double share = static_cast<double>(bucket(--next_).elems) / static_cast<double>(setting_.work.elems);
    actor_->at(elapsed(shape_.optimiser_s * share), [this] { read_next(); });
  }
  void back_propagate() {
    for (std::size_t b = 0; b < there_.size(); ++b)
      actor_->at(elapsed(shape_.backward_s * bucket(b).ready), [this, b] {
        there_[b] = false;
        calls_.give(static_cast<int>(b));
      });
    actor_->at(elapsed(shape_.backward_s), [this] {
      if (calls_.stepped) return calls_.stepped();
      ended_s_.push_back(actor_->now_s());
      begin_step();
    });
  }

  const StrategySetting& setting_;
  double optimiser_share_;
  std::vector<double> factors_;  // by step
  Calls calls_;
  ProtocolActor* actor_ = nullptr;
  std::vector<bool> there_;  // by bucket
  StepShape shape_;
  std::size_t next_ = 0;  // buckets that the forward pass has not read
  double read_ = 0;       // finished fraction of the forward pass
  bool waits_ = false;
  std::vector<double> ended_s_;
};

}  // namespace echelon::inline planner
