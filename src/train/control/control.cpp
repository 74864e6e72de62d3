// SPDX-License-Identifier: Apache-2.0
#include "train/control/control.hpp"

#include <cmath>
#include <utility>

namespace echelon::inline train {
namespace {

constexpr int kSampledRanks = 64;      // blocks of times that rank 0 takes in a meeting, on average
constexpr double kNewsInATimeout = 8;  // enough to tell a slow rank from one that hangs

}  // namespace

void Control::Attached::check() const {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

// Within one lock: `failed` ends the promises that there are, and none that is made after it.
Ticket Control::Attached::expect() {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  promise_ = world_.promise();
  return promise_.ticket();
}

void Control::Attached::on_notified(Token, double now_s) {
  const std::lock_guard lock(mutex_);
  heard();
  if (promise_.pending()) promise_.fulfil(0, now_s, {});
}

void Control::Attached::failed(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = error;
  if (promise_.pending()) promise_.fail(error, world_.clock().now_s());
}

// Calls of meetings, as far as this rank has not attended them.
class Control::Caller {
 public:
  Caller(Engine& world, int channel) : machine_(world.rank(), world.size(), channel), attached_(world, machine_) {
    attached_.attach(machine_);
  }

  void report(const Report& totals, const MeetingWeights& weights) {
    machine_.report(totals, weights);
    attached_.post(ControlCalls::kReport);
  }
  // `attended`: meetings so far.
  std::uint32_t called(double attended) const {
    const MeetingCall call = attached_.newest();
    return static_cast<double>(call.number) > attended ? call.reasons : 0;
  }

 private:
  class Host final : public Attached {
   public:
    Host(Engine& world, ControlCalls& machine) : Attached(world), machine_(machine) {}
    // Throws what ended the machine.
    MeetingCall newest() const {
      const std::lock_guard lock(mutex_);
      if (error_) std::rethrow_exception(error_);
      return call_;
    }

   private:
    void heard() override { call_ = machine_.call(); }
    ControlCalls& machine_;
    MeetingCall call_;
  };

  ControlCalls machine_;
  Host attached_;
};

// News of steps, of this rank and for it.
class Control::Teller {
 public:
  Teller(Engine& world, int channel, const NewsHearer& hearer)
      : clock_(world.clock()),
        every_s_(hearer.hang_timeout_s / kNewsInATimeout),
        machine_(world.rank(), world.size(), channel, every_s_),
        host_(world, *hearer.phase) {
    host_.attach(machine_);
  }

  void stepped() {
    host_.check();
    if (clock_.now_s() - told_s_ < every_s_) return;
    told_s_ = clock_.now_s();
    host_.post(StepNews::kStepped);
  }

 private:
  class Host final : public Attached {
   public:
    Host(Engine& world, PhaseBoard& phase) : Attached(world), phase_(phase) {}

   private:
    void heard() override { phase_.hear_of_step(); }
    PhaseBoard& phase_;
  };

  const Clock& clock_;
  const double every_s_;
  double told_s_ = 0;
  StepNews machine_;
  Host host_;
};

Control::Control(Engine& world, int channel, const Progress& progress, MeetingScript script, NewsHearer hearer,
                 Group* replica)
    : world_(world),
      progress_(progress),
      tree_(world.rank(), world.size(), channel, steps_between_times(world.size())),
      script_(std::move(script)),
      replica_(replica),
      sums_(world),
      calls_(progress.meets == Progress::Meets::when_called && script_.empty()
                 ? std::make_unique<Caller>(world, channel + 2)
                 : nullptr) {
  sums_.attach(tree_);
  if (hearer.phase != nullptr && progress.meets != Progress::Meets::every_step && world.size() > 1)
    news_ = std::make_unique<Teller>(world, channel + 4, hearer);
}

Control::~Control() = default;

int Control::steps_between_times(int ranks) { return (ranks + kSampledRanks - 1) / kSampledRanks; }

void Control::add(const ControlWords& words, bool meets) {
  words_.loss += words.loss;
  words_.weight += words.weight;
  words_.step = words.step;
  words_.last = words.last;
  words_.drift = words.drift;
  words_.requeue |= words.requeue;
  words_.interrupt |= words.interrupt;
  words_.checkpoint |= words.checkpoint;
  if (words.diverged_loss != 0) words_.diverged_loss = words.diverged_loss;
  if (meets) begin();
  if (!calls_) return;
  totals_.weight += words.weight;
  totals_.wishes = words_.wishes();
  if (!std::isfinite(words.loss) || words.diverged_loss != 0) totals_.not_finite_rank = world_.rank();
  report();
}

void Control::stepped() {
  if (news_) news_->stepped();
}

void Control::report() { calls_->report(totals_, weights_); }

void Control::finished() {
  if (!calls_ || totals_.finished > 0) return;
  totals_.finished = 1;
  report();
}

std::uint32_t Control::called(std::int64_t steps) const {
  if (calls_) return calls_->called(totals_.meetings);
  return met_ < script_.size() && steps >= script_[met_].steps ? script_[met_].reasons : 0;
}

std::uint32_t Control::called_together(std::int64_t steps) {
  std::uint32_t reasons = called(steps);
  if (replica_ && calls_) replica_->broadcast(&reasons, sizeof reasons, 0);
  return reasons;
}

void Control::set_epoch_weight(double weight, bool last) {
  weights_.epoch = weight;
  weights_.last = last;
}

void Control::set_join_weight(double weight) { weights_.join = weight; }

void Control::begin() {
  if (met_ + 1 == script_.size() && (script_.back().reasons & kMeetingEnd) == 0) words_.requeue = true;
  sum_ = sums_.expect();
  tree_.set_words(words_);
  ControlWords next;
  next.step = words_.step;  // also of the next meeting, if no step comes before it
  words_ = next;
  sums_.post(ControlTree::kWords);
}

void Control::flush() {
  Ticket flushed = sums_.expect();
  sums_.post(ControlTree::kFlush);
  flushed.wait();
}

const ControlSum& Control::meet() {
  if (!sum_.valid()) begin();
  std::exchange(sum_, {}).wait();
  ++met_;
  if (calls_) {
    totals_.meetings += 1;
    totals_.wishes = 0;
    report();
  }
  return tree_.sum();
}

}  // namespace echelon::inline train
