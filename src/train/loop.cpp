#include "train/loop.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/allocations.hpp"
#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/spans.hpp"
#include "train/positions.hpp"

namespace echelon::inline train {
namespace {

constexpr std::chrono::milliseconds kLookForCalls{2};
constexpr double kSomeWeight = 1e-9;  // of samples: less than any has

}  // namespace

Loop::Loop(const Config& config, const RunPlan& plan, int replica, Stepper& runner, Group& group, Control& control,
           RunState& state, PhaseBoard& phase, std::vector<Hook*> hooks)
    : config_(config),
      plan_(plan),
      replica_(replica),
      runner_(runner),
      group_(group),
      control_(control),
      clock_(control.clock()),
      on_call_(control.progress().meets == Progress::Meets::on_call),
      draws_(runner.draws()),
      state_(state),
      phase_(phase),
      hooks_(std::move(hooks)),
      step_clock_(clock_) {
  ECHELON_CHECK(draws_ == nullptr || on_call_, "replicas that step together draw no batches");
}

Ending Loop::run() {
  phase_.at_step(state_.step);
  phase_.enter("start");
  for (Hook* hook : hooks_) hook->run_begin(state_.step);
  group_.barrier();  // the instant at which the records of all ranks begin
  const PlacedSpans placed(step_clock_.watch(span_place));
  epoch_start_s_ = last_clock_checkpoint_s_ = step_clock_.read();
  step_clock_.restart();
  if (!on_call_ && state_.step >= plan_.total_steps) {  // killed after its last checkpoint
    end_epoch({.epoch = state_.epoch, .step = state_.step, .last = true, .within = state_.step_in_epoch > 0});
    over_ = true;
  }
  if (on_call_) begin_on_call();
  if (SpanRecorder* spans = span_place.recorder) spans->after_step(state_.at.step, step_clock_.start_s());
  Ending ending = Ending::finished;
  while (!over_ && ending == Ending::finished) {
    if (!has_step())
      ending = wait_for_the_others();
    else if (!warmup_ || warmup_->takes(state_.at))
      ending = one_step();
    else if (warmup_->waits(state_.at))
      ending = stand_at_meeting("waiting for the warm-up");
    else
      advance(state_.at.step + warmup_->steps_to_join(state_.at));
  }
  phase_.enter("end");
  runner_.end_run();
  for (Hook* hook : hooks_) hook->run_end(ending == Ending::finished);
  return ending;
}

// From what earlier attempts have left, in which a slow replica may still have had batches of earlier epochs.
void Loop::begin_on_call() {
  epochs_ = state_.epochs();
  if (draws_ != nullptr) {
    for (std::int64_t epoch = draws_->first_epoch(); epoch < epochs_; ++epoch)
      epoch_weight_ += draws_->weight_of_epoch(epoch);
  } else {
    warmup_.emplace(plan_, replica_, state_);
    plan_warmup();
    if (group_.rank() == 0) epoch_weight_ = weight_until(plan_.shards, state_, epochs_, 0);
  }
  plan_epoch();
  take_position({});
}

// Whether this replica has another step to do; where batches are drawn, which. Where ranks meet on call, one that does
// not train does no steps: it attends meetings, and is done before all others.
bool Loop::has_step() {
  if (on_call_ && !runner_.trains()) return false;
  if (draws_ == nullptr) return state_.at.step < plan_.total_steps;
  drawn_ = runner_.draw();
  if (!drawn_) return false;
  state_.at = {.step = drawn_->step, .epoch = drawn_->draw.epoch, .step_in_epoch = drawn_->draw.step_in_epoch};
  return true;
}

Ending Loop::one_step() {
  const AllocationCount allocated = allocation_count;
  StepInfo info = info_of_next();
  const bool every_step = control_.progress().meets == Progress::Meets::every_step;
  info.meets = meets_at(info.step + 1);
  phase_.at_step(info.step + 1);
  LossSums own;
  StepResult result = runner_.run(info, [&](const LossSums& losses) {
    own = losses;
    if (every_step) control_.add(words_of(losses, info.step + 1), true);
  });
  const StepOutcome& outcome = result.outcome;
  count_parts(result);
  for (std::int64_t step = info.step + 1; step < outcome.next_step && !every_step; ++step)
    ECHELON_CHECK(!meets_at(step), "step {} leads to step {} past a meeting", info.step, outcome.next_step);
  const bool meets = meets_at(outcome.next_step);
  if (!every_step) {
    ControlWords words = words_of(outcome.contributed ? own : LossSums{}, outcome.next_step);
    words.drift = outcome.drift;
    for (Hook* hook : hooks_)
      if (const double loss = hook->diverges(own, outcome.next_step); loss != 0) words.diverged_loss = loss;
    control_.add(words, meets);
  }
  control_.stepped();
  const std::uint32_t call = control_.called_together(++trained_);

  StepRecord record;
  record.meets = meets || call != 0;
  record.epoch = info.epoch;
  record.learning_rate = info.learning_rate;
  record.own = own;
  record.loss = own.weight > 0 ? own.loss / own.weight : std::nan("");
  // A paced device counts none.
  record.samples = static_cast<double>(on_call_ ? samples_of_this_rank(info, info.step + 1)
                                                : plan_.shards.counting(info.epoch, info.step_in_epoch));
  record.tokens = !plan_.per_token() ? 0 : on_call_ ? info.local_weight : info.weight;
  if (outcome.contributed && !outcome.skipped) {
    record.entered_samples = static_cast<double>(samples_of_this_rank(info, info.step + 1));
    record.entered_tokens = plan_.per_token() ? info.local_weight : 0;
  }
  record.batch = drawn_ ? drawn_->draw.number : info.step_in_epoch;
  const ControlSum sum = record.meets ? meet(call) : ControlSum{};
  if (!outcome.contributed) {
    record.steps_left_out = outcome.next_step - info.step - 1;
    record.dropped_samples = samples_of_this_rank(info, outcome.next_step);
  }
  remember(outcome);
  if (outcome.give_up) overflow(outcome);
  const bool epoch_over = advance(outcome.next_step);
  record.outcome = outcome;
  record.allocated = allocation_count - allocated;
  return close(record, sum, call, epoch_over);
}

// The parts of the step that the clock of this thread does not count, or that are a device's own.
void Loop::count_parts(const StepResult& result) {
  StepTimes& times = step_clock_.times();
  if (result.of_device) {
    times = *result.of_device;
    return;
  }
  times.exchange_s += result.outcome.exchange_wait_s;
  times.optimiser_s += result.outcome.optimiser_s;
}

// Whether replicas meet, by the strategy's period, once `step` steps of the run are done; this one has done fewer.
bool Loop::meets_at(std::int64_t step) const {
  const bool ends_epoch =
      step >= plan_.total_steps || (state_.at.step_in_epoch + step - state_.at.step) % plan_.steps_per_epoch == 0;
  return control_.progress().meets_after(step, ends_epoch);
}

// This replica has done all its steps, or does none; others have not.
Ending Loop::wait_for_the_others() {
  control_.finished();
  return stand_at_meeting(runner_.trains() ? "waiting for other replicas" : "serving");
}

// This rank stands at the next meeting until it is called, and trains nothing meanwhile.
Ending Loop::stand_at_meeting(const char* phase) {
  StepRecord record;
  phase_.enter(phase);
  const std::uint32_t call = wait_for_call(record);
  const ControlSum sum = meet(call);
  return close(record, sum, call, false);
}

std::uint32_t Loop::wait_for_call(StepRecord& record) {
  record.trained = false;
  record.meets = true;
  record.epoch = state_.at.epoch;
  const StepSpan span(SpanKind::meeting, clock_);
  runner_.come_to_meeting();  // the next one: nobody is held until this rank's next step
  came_ = true;
  for (;;) {
    if (const std::uint32_t call = control_.called(trained_)) return call;
    const ControlWords words = words_of({}, state_.at.step);  // signals and the clock go on
    if (words.requeue || words.interrupt || words.checkpoint) control_.add(words, false);
    for (Hook* hook : hooks_) hook->waiting();
    std::this_thread::sleep_for(kLookForCalls);
  }
}

ControlSum Loop::meet(std::uint32_t call) {
  if ((call & kMeetingEpoch) != 0) {
    ++epochs_;
    plan_epoch();
  }
  if ((call & kMeetingJoin) != 0) {
    warmup_->over();
    plan_warmup();
  }
  ControlSum sum;
  {
    const StepSpan span(SpanKind::meeting, clock_);
    if (on_call_ && !came_) runner_.come_to_meeting();
    came_ = false;
    sum = control_.meet();
  }
  if (sum.not_finite_rank >= 0) refuse_loss(sum);
  return sum;
}

// What hooks see of a step, and what follows from it. `epoch_over`: by this replica's own count.
Ending Loop::close(StepRecord& record, const ControlSum& sum, std::uint32_t call, bool epoch_over) {
  record.step = state_.at.step;
  record.call = call;
  bool last = false, ends_epoch = false;
  if (record.meets) {
    record.loss = sum.weight > 0 ? sum.loss / sum.weight : std::nan("");
    record.arrival_skew_s = sum.arrival_skew_s();
    if (told_compute_s_ >= 0) record.skew_wait_s = std::max(0.0, sum.slowest_s - told_compute_s_);
    record.drift = sum.largest_drift;
    if (control_.times().size() > 1)
      for (const RankStep& rank : control_.times())
        if (rank.compute_s >= 0) record.ranks.push_back(rank);
    state_.epoch_loss += sum.loss;
    state_.epoch_weight += sum.weight;
    if (on_call_) take_position(sum);
    record.step = state_.step;
    last = over_ = on_call_ ? (call & kMeetingEnd) != 0 : state_.step >= plan_.total_steps;
    ends_epoch = on_call_ ? (call & kMeetingEpoch) != 0 : epoch_over;
    record.checkpoint_wanted = sum.checkpoint();
    record.stopping = !last && (sum.requeue() || sum.interrupt());
  }

  phase_.enter("hooks");
  const double hooks_start_s = step_clock_.read();
  record.times = step_clock_.times();
  const double train_loss = state_.epoch_weight > 0 ? state_.epoch_loss / state_.epoch_weight : std::nan("");
  if (ends_epoch) state_.epoch_loss = state_.epoch_weight = 0;
  record.ends_epoch = ends_epoch || last;
  {
    const StepClock::Held hooks(step_clock_, &StepTimes::hooks_s);
    each_hook([&](Hook& hook) { hook.step_end(record); });
    if (record.meets && hooks_end_run()) last = over_ = record.ends_epoch = true;
    if (record.ends_epoch)
      end_epoch({.epoch = on_call_ ? epochs_ : state_.epoch,
                 .step = record.step,
                 .train_loss = train_loss,
                 .last = last,
                 .within = !ends_epoch && state_.step_in_epoch > 0});
  }
  if (over_) record.stopping = false;
  record.times = step_clock_.times();
  trace(record.trained, hooks_start_s, step_clock_.end_s());
  step_clock_.restart();
  for (Hook* hook : hooks_) hook->step_recorded(record);
  return !record.stopping ? Ending::finished : sum.interrupt() ? Ending::interrupted : Ending::requeue;
}

// The spans of a step, or of a meeting that this rank has waited for; the window of run.trace opens and closes here.
void Loop::trace(bool trained, double hooks_start_s, double end_s) {
  SpanRecorder* const spans = span_place.recorder;
  if (!spans) return;
  spans->add({.begin_s = hooks_start_s, .end_s = end_s, .kind = SpanKind::hooks});
  if (trained) spans->add({.begin_s = step_clock_.start_s(), .end_s = end_s, .kind = SpanKind::step});
  spans->after_step(state_.at.step, end_s);
}

template <class Call>
void Loop::each_hook(const Call& call) {
  for (Hook* hook : hooks_) {
    const StepClock::Held part(step_clock_, hook->time_part());
    call(*hook);
  }
}

void Loop::end_epoch(EpochRecord record) {
  record.per_token = plan_.per_token();
  record.seconds = clock_.now_s() - epoch_start_s_;
  each_hook([&](Hook& hook) { hook.epoch_end(record); });
  over_ |= hooks_end_run();
  epoch_start_s_ = clock_.now_s();
}

bool Loop::hooks_end_run() const {
  return std::any_of(hooks_.begin(), hooks_.end(), [](const Hook* hook) { return hook->ends_run(); });
}

// Rank 0 calls the meeting at the end of epoch `epochs_`, once the weights of all its steps add up, or none is left.
void Loop::plan_epoch() {
  if (group_.rank() != 0) return;
  epoch_weight_ += draws_ != nullptr ? draws_->weight_of_epoch(epochs_) : plan_.weight_of_epoch(epochs_);
  const bool last = position_at(plan_.shards, plan_.total_steps - 1).epoch <= epochs_;
  control_.set_epoch_weight(std::max(epoch_weight_, kSomeWeight), last);
}

void Loop::plan_warmup() {
  if (group_.rank() == 0) control_.set_join_weight(warmup_->next_weight());
}

// Where replicas have no steps in common: at a meeting the run's position is that of the replica that is furthest, and
// what is trained are the steps of each, or the draws' to tell. Collective.
void Loop::take_position(const ControlSum& sum) {
  state_.epochs_over = epochs_;
  const std::int64_t most = std::max(state_.step, static_cast<std::int64_t>(sum.most_steps));
  state_.move_to(position_at(plan_.shards, most));
  state_.replica_steps = steps_by_replica(group_, plan_.replicas, replica_, state_.at.step);
  if (draws_ != nullptr) state_.replica_steps.clear();
}

// To the step that the replica joins next; true where an epoch ends on the way.
bool Loop::advance(std::int64_t next_step) {
  Position& at = state_.at;
  const std::int64_t steps = next_step - at.step, epoch = at.epoch;
  ECHELON_CHECK_GE(steps, 1, "step {} leads back to step {}", at.step, next_step);
  at = position_after(plan_.shards, at, steps);
  if (!on_call_) state_.move_to(at);
  return at.epoch > epoch;
}

}  // namespace echelon::inline train
