// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/evaluate.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/progress.hpp"
#include "base/spans.hpp"
#include "data/loader.hpp"
#include "job/agree.hpp"
#include "train/set_inputs.hpp"

namespace echelon::inline train {

namespace {

// While it exists, the weights are their average, if there is one.
class AveragedWeights {
 public:
  explicit AveragedWeights(Optimiser& optimiser) : optimiser_(optimiser) { optimiser_.exchange_average(); }
  ~AveragedWeights() { optimiser_.exchange_average(); }
  AveragedWeights(const AveragedWeights&) = delete;

 private:
  Optimiser& optimiser_;
};

}  // namespace

EvaluateHook::EvaluateHook(const Config& config, const RunPlan& plan, const RankGroups& rank_groups, Arenas& arenas,
                           Optimiser& optimiser, Strategy& strategy, ActivationExchange& activation_exchange,
                           Group& group, Group* model_group, PhaseBoard& phase, Tell tell)
    : config_(config),
      plan_(plan),
      trains_(rank_groups.trains()),
      replica_(rank_groups.replica()),
      has_loss_(rank_groups.has_loss(plan.part.has_loss_by_rows())),
      own_pace_(strategy.progress().meets == Progress::Meets::when_called),
      arenas_(arenas),
      optimiser_(optimiser),
      strategy_(strategy),
      activation_exchange_(activation_exchange),
      group_(group),
      model_group_(model_group),
      phase_(phase),
      tell_(std::move(tell)) {
  if (!plan_.test || config.evaluate.by == EvaluateBy::aside) return;
  const bool first_alone = config.evaluate.by == EvaluateBy::first;
  part_ = make_share(*plan_.test,
                     first_alone ? lone_evaluation_plan(*plan_.test, config, plan.replicas)
                                 : evaluation_plan(*plan_.test, config, plan.replicas),
                     replica_);
  if (config.evaluate.train_fraction > 0) {
    std::vector<std::int64_t> batches;  // those of the test data, so that one program takes both
    for (int r = 0; r < part_.shards->replicas(); ++r) batches.push_back(part_.shards->batch(r));
    train_ = make_share(plan_.train, training_evaluation_plan(plan_.train, config, std::move(batches)), replica_);
  }
  const bool by_rows = plan_.part.has_loss_by_rows();
  if (asks_for_values(config)) value_counter_.emplace(by_rows && has_loss_ ? plan_.part.graph : plan_.graph);
  if (asks_for_classes(config) || weighs_classes()) {
    const MeshCoord& coord = rank_groups.coord();
    const bool last_stage = coord.stage == rank_groups.mesh().pipeline() - 1;
    counter_.emplace(plan_.graph, plan_.part.graph,
                     ClassCounter::Place{.replica = model_group,
                                         .has_outputs = trains_ && last_stage && (by_rows || coord.spatial_shard == 0),
                                         .shard = coord.shard,
                                         .counts = has_loss_});
  }
  if (own_pace_ && config.evaluate.every_steps > 0 && trains_ && replica_ == 0)
    whole_ = make_share(*plan_.test, lone_evaluation_plan(*plan_.test, config, plan.replicas), 0);
}

EvaluateHook::Share EvaluateHook::make_share(const Dataset& data, SamplePlan shards, int replica) const {
  Share share{
      .data = &data, .shards = std::make_unique<SamplePlan>(std::move(shards)), .replica = replica, .program = nullptr};
  if (!trains_ || replica >= share.shards->replicas()) return share;
  const std::int64_t batch = share.shards->batch(replica);
  if (part_.program && part_.program->batch() == batch) {
    share.program = part_.program;
    return share;
  }
  share.program = std::make_shared<Program>(
      plan_.part.graph, arenas_, ProgramOptions{.batch = batch, .training = false, .dtype = config_.device.dtype});
  share.program->set_transfer([this](const Transfer& transfer) { activation_exchange_.carry(transfer); });
  return share;
}

EvaluateHook::Sums EvaluateHook::no_sums(const Share& share) const {
  Sums sums;
  sums.batches.resize(static_cast<std::size_t>(share.shards->steps_per_epoch() * share.shards->replicas()) * 3);
  if (counter_)
    sums.classes = ClassCounts(classes_of(plan_.graph), asks_for(config_, "confusion"), asks_for(config_, "auc"));
  if (value_counter_) sums.values.resize(sums.batches.size() / 3 * value_counter_->sums());
  return sums;
}

void EvaluateHook::add_over(Group& ranks, Sums& sums) {
  ranks.sum(sums.batches);
  if (sums.classes.any()) ranks.sum(sums.classes.values());
  if (!sums.values.empty()) ranks.sum(sums.values);
}

// Every batch's sums are stored separately, so that all are added in the order of batches on any number of ranks.
void EvaluateHook::pass(const Share& share, Sums& sums) {
  const SamplePlan& shards = *share.shards;
  LoaderOptions loading = evaluation_loading(config_, arenas_.dtype(), share.replica);
  loading.slab = plan_.part.slab;
  Loader loader(*share.data, shards, loading);
  share.program->reset_states();
  activation_exchange_.begin(static_cast<int>(shards.steps_per_epoch()), share.program->batch(), false);
  LongWork work("evaluation", "batches", shards.steps_per_epoch(),
                group_.rank() == 0 ? progress_style(config_.run.progress) : ProgressStyle::none,
                config_.run.heartbeat_s);
  for (std::int64_t step = 0; step < shards.steps_per_epoch(); ++step) {
    work.at(step);
    const Batch& given = loader.next();
    set_inputs(arenas_.device(), *share.program, given);
    begin_series(*share.program, given);
    share.program->reset_losses();
    share.program->forward({});
    if (counter_ && sums.classes.any() && arenas_.device().computes())
      counter_->count(arenas_.device(), *share.program, given, sums.classes);
    if (!has_loss_) continue;
    const LossSums batch = share.program->losses();
    const auto number = static_cast<std::size_t>(step * shards.replicas() + share.replica), at = number * 3;
    sums.batches[at] = batch.loss, sums.batches[at + 1] = batch.correct, sums.batches[at + 2] = batch.weight;
    if (!sums.values.empty() && arenas_.device().computes())
      value_counter_->count(arenas_.device(), *share.program, given,
                            sums.values.data() + number * value_counter_->sums());
  }
}

EvaluateHook::Figures EvaluateHook::figures_of(Sums& sums, bool common) const {
  std::array<double, 3> all{};
  for (std::size_t i = 0; i < sums.batches.size(); ++i) all[i % 3] += sums.batches[i];
  if (!arenas_.device().computes()) return {};  // the time was real, the figures mean nothing
  const std::string diverged = "the loss on the test data is not a finite number: the weights have diverged";
  if (!std::isfinite(all[0])) {
    if (common) throw CommonError(kExitNumeric, diverged);
    throw NumericError(diverged);
  }
  Figures figures{.loss = all[2] > 0 ? all[0] / all[2] : 0, .classes = std::move(sums.classes)};
  if (!sums.values.empty()) figures.values = value_counter_->figures(sums.values);
  if (plan_.graph.counts_correct()) figures.accuracy = all[2] > 0 ? all[1] / all[2] : 0;
  if (figures.classes.any() && weighs_classes()) figures.accuracy = figures.classes.accuracy();
  return figures;
}

// Called by all ranks. Evaluates once per meeting, even if an epoch ends with a step after which an evaluation is due.
EvaluateHook::Figures EvaluateHook::meet() {
  if (met_) return *met_;
  phase_.enter(trains_ ? "evaluation" : kStandBy);
  const SpanScope span(SpanKind::evaluation);
  strategy_.drain();
  const AveragedWeights averaged(optimiser_);
  const auto measure = [&](const Share& share, Sums sums) {
    if (takes_part(share)) pass(share, sums);
    add_over(group_, sums);
    return figures_of(sums, true);
  };
  met_ = measure(part_, no_sums(part_));
  if (train_.shards) {
    Sums sums = no_sums(train_);
    if (!weighs_classes()) sums.classes = {};
    sums.values.clear();
    const Figures train = measure(train_, std::move(sums));
    met_->train_loss = train.loss, met_->train_accuracy = train.accuracy;
  }
  phase_.enter("hooks");
  return *met_;
}

// Called only by the ranks of this replica.
EvaluateHook::Figures EvaluateHook::snapshot() {
  phase_.enter("evaluation");
  const SpanScope span(SpanKind::evaluation);
  strategy_.wait_parameters({0, arenas_.elems()});
  Sums sums = no_sums(whole_);
  pass(whole_, sums);
  if (model_group_) add_over(*model_group_, sums);
  phase_.enter("hooks");
  return figures_of(sums, false);
}

// At their own pace: by the steps of the first replica between meetings. Else at the first meeting after that many
// steps.
bool EvaluateHook::due(const StepRecord& record) {
  const std::int64_t every = config_.evaluate.every_steps;
  if (!part_.shards || every == 0 || record.meets == own_pace_) return false;
  if (own_pace_ && (replica_ != 0 || !trains_)) return false;
  if (seen_step_ < 0) seen_step_ = record.step - 1;
  const bool is_due = record.step / every > seen_step_ / every;
  seen_step_ = record.step;
  return is_due;
}

void EvaluateHook::step_end(const StepRecord& record) {
  met_.reset();
  if (!due(record)) return;
  const double start_s = now_s();
  const Figures figures = own_pace_ ? snapshot() : meet();
  if (figures.loss < 0) return;
  EpochFigures row;
  row.epoch = record.epoch, row.step = record.step;
  row.test_loss = figures.loss;
  if (figures.accuracy >= 0) row.test_accuracy = figures.accuracy;
  if (figures.train_loss >= 0) row.train_eval_loss = figures.train_loss;
  if (figures.train_accuracy >= 0) row.train_accuracy = figures.train_accuracy;
  if (plan_.per_token()) row.test_perplexity = std::exp(figures.loss);
  if (figures.classes.any())
    take_class_figures(chosen_figures(figures.classes.figures(), config_.evaluate.metrics), row);
  take_value_figures(chosen_figures(figures.values, config_.evaluate.metrics), row);
  row.seconds = now_s() - start_s;
  tell_(own_pace_ ? "snapshot" : "test", row);
}

void EvaluateHook::epoch_end(EpochRecord& record) {
  if (!part_.shards) return;
  const std::int64_t every = config_.evaluate.every_epochs;
  if (!record.last && (every == 0 || record.epoch % every != 0)) return;
  const Figures figures = meet();
  record.test_loss = figures.loss;
  record.test_accuracy = figures.accuracy;
  record.train_eval_loss = figures.train_loss;
  record.train_accuracy = figures.train_accuracy;
  record.classes = figures.classes;
  record.values = figures.values;
}

}  // namespace echelon::inline train
