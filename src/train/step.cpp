// SPDX-License-Identifier: Apache-2.0
#include "train/step.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/error.hpp"
#include "model/device_options.hpp"
#include "train/batch_draws.hpp"
#include "train/set_inputs.hpp"
#include "train/step_clock.hpp"

namespace echelon::inline train {
namespace {

void add(LossSums& all, const LossSums& sums) {
  all.loss += sums.loss;
  all.correct += sums.correct;
  all.weight += sums.weight;
}

}  // namespace

// Shared by the passes of one step.
struct StepRunner::Step {
  const StepInfo& info;
  StepResult& result;
  const std::function<void(const LossSums&)>& on_losses;
  const double divisor;
};

StepRunner::StepRunner(const StepperParts& parts, const OpenSource& open)
    : p_(parts),
      replicas_(p_.plan.sources(p_.place.replica())),
      open_(open),
      replay_(p_.config.device.cuda_graphs && p_.arenas.device().records()),
      whole_passes_(replay_ && p_.place.mesh().ranks() == 1),
      random_(p_.config.seed, "step") {
  const Config& config = p_.config;
  const Mesh& mesh = p_.place.mesh();
  passes_ = pipeline_passes(config.parallel.schedule, mesh.pipeline(), p_.place.coord().stage,
                            static_cast<int>(p_.plan.batch.accumulation) * static_cast<int>(replicas_.size()));
  in_flight_ = most_in_flight(passes_);
  if (auto timer = p_.arenas.device().make_timer()) device_times_.emplace(std::move(timer));
  if (auto pace = pace_options(config.device, config.seed, mesh.rank(p_.place.coord())))
    pace_.emplace(std::move(*pace));
  make_programs();
  if (config.train.reproducible) tree_ = std::make_unique<MicroShards>(p_.arenas, p_.plan.batch.accumulation);
  loading_ = training_loading(config);
  loading_.dtype = p_.arenas.dtype();
  loading_.buffer_bytes /= static_cast<std::int64_t>(replicas_.size());
  loading_.draws = p_.draws;
  loading_.slab = p_.plan.part.slab;
  open_sources(p_.start);
}

void StepRunner::open_sources(const Position& at) {
  LoaderOptions options = loading_;
  options.start_epoch = at.epoch;
  options.start_step = p_.draws == nullptr ? at.step_in_epoch : 0;
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    options.replica = replicas_[i];
    sources_[i].batches = open_ ? open_(options) : std::make_unique<Loader>(p_.plan.train, shards(), options);
  }
}

// Programs and batches that are read ahead have the batch's size. The old ones are freed first.
void StepRunner::share_by(const std::vector<std::int64_t>& batches, const Position& at) {
  micros_.clear(), recurrent_states_.clear();
  upload_.reset(), programs_.clear(), sources_.clear();
  shared_ = p_.plan.shards.with_batches(batches);
  make_programs();
  open_sources(at);
}

// Makes one program for each micro-batch size and bucket. Each micro-batch of a step has a slot for carried states.
void StepRunner::make_programs() {
  const auto accumulation = static_cast<int>(p_.plan.batch.accumulation);
  std::map<std::int64_t, int> slots;  // by micro-batch size
  for (const int replica : replicas_) {
    const std::int64_t micro = shards().batch(replica) / accumulation;
    sources_.push_back({.batches = nullptr, .micro_batch = micro, .first_slot = slots[micro]});
    slots[micro] += accumulation;
  }
  std::vector<std::int64_t> buckets = p_.plan.shards.buckets();
  if (buckets.empty()) buckets.push_back(0);
  for (const auto& [micro, count] : slots)
    for (const std::int64_t bucket : buckets) {
      auto& program = programs_[{micro, bucket}];
      program = std::make_unique<Program>(p_.plan.graph_for(bucket), p_.arenas,
                                          ProgramOptions{.batch = micro,
                                                         .dtype = p_.config.device.dtype,
                                                         .state_slots = count,
                                                         .in_flight = in_flight_,
                                                         .replay = replay_});
      program->set_transfer([this](const Transfer& transfer) { p_.activation_exchange.carry(transfer); });
      if (p_.place.mesh().replicas() > 1)
        program->set_sum_over_replicas([this](const Tensor& sums) { p_.batch_norm_sum(sums); });
      if (!whole_passes_)
        program->set_wait_parameters([this](ArenaRange range) { p_.strategy.wait_parameters(range); });
    }
  first_row_ = shards().row_of(replicas_.front());
  own_rows_ = 0;
  for (const Source& source : sources_)
    for (int m = 0; m < accumulation; ++m, own_rows_ += source.micro_batch)
      if (Program& program = program_of({source.micro_batch, buckets.front()}); program.has_states())
        recurrent_states_.push_back({.program = &program, .slot = source.first_slot + m, .row = own_rows_});
  list_micros();
  std::size_t input_bytes = 0;
  for (const auto& [key, program] : programs_) input_bytes = std::max(input_bytes, program->input_bytes());
  upload_ = std::make_unique<Upload>(p_.arenas.device(), input_bytes);
  if (pace_)
    for (auto& [key, program] : programs_) program->set_pace(*pace_, static_cast<double>(micros_.size()));
}

void StepRunner::visit_state(StateVisitor& visitor) {
  visit_recurrent_state(recurrent_states_, first_row_, own_rows_, p_.plan.shards.global_batch(), visitor);
}

Program& StepRunner::program_of(const Source& source) {
  return program_of({source.micro_batch, p_.plan.shards.length(source.batch->epoch, source.batch->step)});
}

LossSums StepRunner::losses() {
  if (tree_) return tree_->losses();
  LossSums all;
  for (auto& [key, program] : programs_) add(all, program->losses());
  return all;
}

// The micro-batches of every step, in order.
void StepRunner::list_micros() {
  for (Source& source : sources_)
    for (std::int64_t m = 0; m < p_.plan.batch.accumulation; ++m)
      micros_.push_back({.source = &source, .first = m * source.micro_batch});
}

// The samples over which synchronised batch norm takes its statistics.
std::int64_t StepRunner::samples_of_group() const {
  const std::int64_t group = p_.config.model.batch_norm_group;
  if (group == 0) return p_.plan.batch.global;
  const std::int64_t first = replicas_.front() / group * group;
  std::int64_t samples = 0;
  for (std::int64_t replica = first; replica < first + group; ++replica)
    samples += shards().batch(static_cast<int>(replica));
  return samples;
}

PassScalars StepRunner::scalars_of(const Step& step, int micro) const {
  const auto& [source, first] = micros_[static_cast<std::size_t>(micro)];
  PassScalars scalars;
  scalars.loss_scale = p_.optimiser.loss_scale() / step.divisor;
  scalars.group_weight = weight_of(micro) / step.divisor;
  scalars.samples = static_cast<double>(samples_of_group());
  scalars.key = random_.at(static_cast<std::uint64_t>(step.info.step)).key();
  scalars.first = micro == 0 || tree_;
  scalars.slot = source->first_slot + static_cast<int>(first / source->micro_batch);
  scalars.in_flight = micro % in_flight_;
  return scalars;
}

void StepRunner::report_losses(Step& step, const LossSums& losses) {
  step.result.losses = losses;
  step.on_losses(losses);
}

void StepRunner::send_losses() {
  for (auto& [key, program] : programs_) program->send_losses();
  losses_sent_ = p_.arenas.device().record();
}

LossSums StepRunner::sent_losses() {
  losses_sent_->wait();
  LossSums all;
  for (auto& [key, program] : programs_) add(all, program->sent_losses());
  return all;
}

void StepRunner::forward(Step& step, int micro) {
  const auto& [source, first] = micros_[static_cast<std::size_t>(micro)];
  if (first == 0) {
    if (!p_.plan.train.label_weights.any()) take_batch(*source, step.info);
    if (micro == 0 && source->batch->step == 0)  // streams begin anew
      for (auto& [key, of_any] : programs_) of_any->reset_states();
  }
  p_.phase.enter("data");
  Program& program = program_of(*source);
  const PassScalars scalars = scalars_of(step, micro);
  {
    const WatchedSpan span(SpanKind::data);
    set_inputs(*upload_, program, *source->batch, first, scalars.in_flight);
    begin_series(program, *source->batch, first, scalars.slot);
  }
  p_.phase.enter("forward");
  {
    const WatchedSpan span(SpanKind::forward);
    if (whole_passes_) p_.strategy.wait_parameters({0, p_.arenas.elems()});
    program.forward(scalars);
  }
  if (tree_) {
    tree_->add_losses(program.losses());
    program.reset_losses();
  }
  if (micro + 1 < static_cast<int>(micros_.size())) return;
  if (p_.arenas.device().on_host())
    report_losses(step, losses());
  else if (!tree_)
    send_losses();
}

void StepRunner::backward(Step& step, int micro) {
  Program& program = program_of(*micros_[static_cast<std::size_t>(micro)].source);
  const PassScalars scalars = scalars_of(step, micro);
  const bool last = micro + 1 == static_cast<int>(micros_.size());
  p_.phase.enter("backward");
  const WatchedSpan span(SpanKind::backward);
  const auto ready = [this](ArenaRange range) {
    if (tree_) tree_->complete_gradients(range);
    p_.plan.part.zero_counted_elsewhere(range, p_.arenas);
    if (damage_) damage_(range);
    p_.strategy.gradient_ready(range);
  };
  if (last && !whole_passes_)
    program.backward(scalars, ready);
  else
    program.backward(scalars);
  if (last && whole_passes_) ready({0, p_.arenas.elems()});
  if (!last && tree_) tree_->keep_gradients();
}

StepResult StepRunner::run(const StepInfo& planned, const std::function<void(const LossSums&)>& on_losses) {
  StepResult result;
  const double drawn_s = std::exchange(drawing_s_, 0);
  const StepInfo info = p_.plan.train.label_weights.any() ? weighed(planned) : planned;
  Step step{info, result, on_losses, p_.strategy.divisor(info)};
  SpanPlace place = span_place;
  if (device_times_) {
    device_times_->begin_step();
    place.borders = &*device_times_;
  }
  const PlacedSpans placed(place);
  p_.strategy.begin_step(info);
  for (auto& [key, program] : programs_) program->reset_losses();
  if (tree_) tree_->begin_step();
  if (pace_) pace_->begin_step(info.step);
  p_.activation_exchange.begin(static_cast<int>(micros_.size()), sources_.front().micro_batch, true);
  for (const Pass& pass : passes_) pass.backward ? backward(step, pass.micro) : forward(step, pass.micro);
  if (pace_) {
    const WatchedSpan span(SpanKind::backward);
    pace_->end_step();
  }
  p_.phase.enter("exchange");
  result.outcome = p_.strategy.end_step();
  if (!p_.arenas.device().on_host()) end_behind(step, drawn_s);
  if (p_.draws != nullptr) p_.draws->trained();
  return result;
}

// If the device runs behind: waits for the step's forward passes, not for what follows them.
void StepRunner::end_behind(Step& step, double drawn_s) {
  if (device_times_) device_times_->end_step();
  {
    const WatchedSpan span(SpanKind::forward);
    report_losses(step, tree_ ? losses() : sent_losses());
  }
  if (device_times_) step.result.of_device = device_times_->take();
  if (!step.result.of_device) return;
  step.result.of_device->data_wait_s += drawn_s;  // before the step began on the device
  step.result.outcome.exchange_wait_s = step.result.of_device->exchange_s;
}

void StepRunner::end_run() {
  if (device_times_) device_times_->end_run();
}

const DrawPlan* StepRunner::draws() const { return p_.draws == nullptr ? nullptr : &p_.draws->plan(); }

std::optional<Stepper::Drawn> StepRunner::draw() {
  p_.phase.enter("data");
  const SpanTimer timer(drawing_s_, SpanKind::data);
  Source& source = sources_.front();
  source.batch = source.batches->draw();
  if (source.batch == nullptr) return {};
  const Draw draw = p_.draws->plan().at(source.batch->drawn);
  return Drawn{.draw = draw, .step = p_.draws->step_of(draw)};
}

std::optional<PaceRecord> StepRunner::pace() const { return pace_ ? std::optional(pace_->record()) : std::nullopt; }

std::uint64_t StepRunner::bytes_read() const {
  std::uint64_t sum = 0;
  for (const Source& source : sources_) sum += source.batches->bytes_read();
  return sum;
}

std::uint64_t StepRunner::bytes_used() const {
  std::uint64_t sum = 0;
  for (const Source& source : sources_) sum += source.batches->bytes_used();
  return sum;
}

std::size_t StepRunner::spared_bytes() const {
  const auto held = static_cast<std::size_t>(in_flight_), all = std::max(held, micros_.size());
  return activation_bytes() / held * (all - held);
}

std::size_t StepRunner::activation_bytes() const {
  std::size_t sum = 0;
  for (const auto& [key, program] : programs_) sum += program->activation_bytes();
  return sum;
}

}  // namespace echelon::inline train
