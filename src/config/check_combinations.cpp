// SPDX-License-Identifier: Apache-2.0
#include "config/check_combinations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/quantities.hpp"
#include "base/text.hpp"
#include "config/batch_plan.hpp"
#include "config/combinations.hpp"
#include "config/faults.hpp"
#include "config/goal.hpp"
#include "config/refuse.hpp"
#include "config/trace_steps.hpp"
#include "config/traits/algorithms.hpp"
#include "config/traits/layers.hpp"
#include "config/traits/rules.hpp"
#include "config/traits/strategies.hpp"
#include "config/unfit.hpp"

namespace echelon::inline config {
namespace {

bool takes_means(const LayerConfig& layer) {
  const LayerTraits* traits = find_traits(kLayers, layer.type);
  return traits && traits->takes_means;
}

void check_model(const Config& config) {
  const ModelConfig& model = config.model;
  if (!model.zoo.empty() && !model.layers.empty())
    refuse(config, "model.zoo",
           fmt::format("model.zoo = \"{}\" and [[model.layers]] ({}) exclude each other; keep one", model.zoo,
                       model.layers.front().where));
  if (model.zoo.empty() && model.layers.empty())
    refuse(config, "model", "no model: write model.zoo = \"lenet\" or [[model.layers]]");
  if (model.dropout < 0 && model.dropout != -1)
    refuse(config, "model.dropout",
           fmt::format("model.dropout = {} is not a rate; nearest valid: 0, or -1 for the rate of each layer",
                       model.dropout));
  if (!model.weights.empty() && !config.run.resume_from.empty())
    refuse(config, "model.weights",
           "model.weights and run.resume_from both supply weights; keep one: run.resume_from for all that a run has "
           "saved, model.weights for weights alone");
  for (const LayerConfig& layer : model.layers)
    if (layer.init_range > 0 && (layer.init.empty() ? model.init : layer.init) != "uniform")
      refuse(config, "model.layers",
             fmt::format("init_range of the layer at {} is for init = \"uniform\"; leave it out", layer.where));
  const ParallelConfig& parallel = config.parallel;
  for (const LayerConfig& layer : model.layers)
    if (!layer.weights_of.empty() && (parallel.pipeline > 1 || parallel.tensor > 1 || parallel.split == "auto"))
      refuse(config, "model.layers",
             fmt::format("the layer at {} has weights_of = \"{}\": both layers need the whole table on one rank, but "
                         "parallel.{} divides the model; leave one of them out",
                         layer.where, layer.weights_of,
                         parallel.pipeline > 1 ? "pipeline"
                         : parallel.tensor > 1 ? "tensor"
                                               : "split"));
  for (const LayerConfig& layer : model.layers)
    if (takes_means(layer) && config.data.ragged == Ragged::zero_weight)
      refuse(config, "data.ragged",
             fmt::format("data.ragged = \"zero_weight\" fills batches with samples that {} ({}) would count in its "
                         "means; use \"wrap\" or \"drop\"",
                         layer.type, layer.where));
}

void check_scaling(const Config& config) {
  if (config.optimiser.scaling != "none" && config.optimiser.base_batch == 0)
    refuse(config, "optimizer.scaling",
           fmt::format(
               "optimizer.scaling = \"{}\" needs the batch size that learning_rate refers to: set optimizer.base_batch "
               "({}, batch.global, leaves the rate as it is)",
               config.optimiser.scaling, config.batch.global));
}

void check_momentum_before_coding(const Config& config) {
  const std::string key = "optimizer.momentum_before_coding";
  if (!config.optimiser.momentum_before_coding) return;
  if (config.optimiser.momentum == 0)
    refuse(config, key, key + " needs momentum above 0; set optimizer.momentum (0.9) or leave it out");
  if (any_choice_is(config, Property::needs_all_gradients))
    refuse(config, key,
           key +
               " cannot be combined with optimizer.clip_norm or a scaled loss: both look at the sums of gradients, "
               "which would contain the momentum; leave one of them out");
  if (config.train.reproducible)
    refuse(config, key,
           key +
               " cannot be combined with train.reproducible: each replica rounds a momentum of its own; leave one of "
               "them out");
}

// The points of a schedule by a list of factors.
void check_points(const Config& config) {
  const OptimiserConfig& optimiser = config.optimiser;
  const ScheduleTraits* schedule = find_traits(kSchedules, optimiser.schedule);
  if (!schedule || !schedule->reads.contains("points")) return;
  const std::vector<double>& points = optimiser.points;
  if (points.empty() || points.front() != 0)
    refuse(
        config, points.empty() ? "optimizer.schedule" : "optimizer.points",
        fmt::format("optimizer.schedule = \"{0}\" needs the points from 0 on and the factor on learning_rate at each "
                    "of them, e.g. points = [0, 30, 60], factors = [1, 0.1, 0.01]",
                    optimiser.schedule));
  if (optimiser.factors.size() != points.size())
    refuse(config, "optimizer.factors",
           fmt::format("optimizer.factors has {} and optimizer.points has {}; give a factor for each point",
                       counted(std::ssize(optimiser.factors), "number"), points.size()));
  for (std::size_t i = 1; i < points.size(); ++i)
    if (points[i] <= points[i - 1])
      refuse(config, "optimizer.points",
             fmt::format("optimizer.points must increase, but {} comes after {}", points[i], points[i - 1]));
}

void check_optimiser(const Config& config) {
  const OptimiserConfig& optimiser = config.optimiser;
  check_scaling(config);
  check_momentum_before_coding(config);
  if (optimiser.nesterov && optimiser.momentum == 0)
    refuse(config, "optimizer.nesterov",
           "optimizer.nesterov needs momentum above 0; set optimizer.momentum (0.9) or nesterov = false");
  if (optimiser.schedule == "step" && optimiser.decay_at_epochs.empty())
    refuse(config, "optimizer.schedule",
           "schedule = \"step\" needs the epochs at which to decay, e.g. decay_at_epochs = [30, 60]");
  for (std::size_t i = 1; i < optimiser.decay_at_epochs.size(); ++i)
    if (optimiser.decay_at_epochs[i] <= optimiser.decay_at_epochs[i - 1])
      refuse(config, "optimizer.decay_at_epochs",
             fmt::format("optimizer.decay_at_epochs must increase, but {} comes after {}", optimiser.decay_at_epochs[i],
                         optimiser.decay_at_epochs[i - 1]));
  check_points(config);
  if (config.train.epochs > 0 && optimiser.warmup_epochs > static_cast<double>(config.train.epochs))
    refuse(config, "optimizer.warmup_epochs",
           fmt::format("optimizer.warmup_epochs = {} is longer than train.epochs = {}; at most {}",
                       optimiser.warmup_epochs, config.train.epochs, config.train.epochs));
}

void check_warmup(const Config& config) {
  const ExchangeConfig& exchange = config.exchange;
  if (exchange.warmup_replicas == 0) return;
  if ((exchange.warmup_steps > 0) == (exchange.warmup_epochs > 0))
    refuse(
        config, "exchange.warmup_replicas",
        "exchange.warmup_replicas needs the length of the warm-up: set either warmup_steps or warmup_epochs above 0");
  if (exchange.warmup_each_epoch && exchange.warmup_epochs > 1)
    refuse(
        config, "exchange.warmup_epochs",
        fmt::format("exchange.warmup_epochs = {} is longer than the epoch that warmup_each_epoch = true begins with; "
                    "at most 1",
                    exchange.warmup_epochs));
}

void check_batch(const Config& config) {
  const BatchConfig& batch = config.batch;
  if (batch.global == 0 && batch.scale_with_replicas)
    refuse(config, "batch.global", "batch.global = 0 (all samples) cannot grow with batch.scale_with_replicas = true");
  if (batch.global == 0 && config.data.sharding != Sharding::record)
    refuse(config, "batch.global",
           "batch.global = 0 (all samples in a step) cuts the step by record; write data.sharding = \"record\"");
  if (!batch.shares.empty() && config.data.as_replicas > 0 &&
      static_cast<std::int64_t>(batch.shares.size()) != config.data.as_replicas)
    refuse(config, "batch.shares",
           fmt::format("batch.shares has {} entries but data.as_replicas = {}; give one share for each replica",
                       batch.shares.size(), config.data.as_replicas));
  if (batch.shares.empty() && batch.global % batch.accumulation != 0) {
    const std::int64_t below = batch.global / batch.accumulation * batch.accumulation;
    refuse(config, "batch.global",
           fmt::format("batch.global = {} is not divisible by accumulation = {}; nearest valid: {}{}", batch.global,
                       batch.accumulation, below > 0 ? fmt::format("{} or ", below) : "", below + batch.accumulation));
  }
}

void check_buckets(const Config& config) {
  const DataConfig& data = config.data;
  for (std::size_t i = 1; i < data.buckets.size(); ++i)
    if (data.buckets[i] <= data.buckets[i - 1])
      refuse(config, "data.buckets",
             fmt::format("data.buckets must increase, but {} comes after {}", data.buckets[i], data.buckets[i - 1]));
}

// Checks the keys of the tables [exchange.<strategy>] that the strategy reads.
template <class Keys>
void check_table(const Config& config, std::string_view name, const Keys& keys) {
  if constexpr (requires { keys.misfit(); })
    if (strategy_traits(config.exchange.strategy).reads_table(name))
      if (const auto misfit = keys.misfit())
        refuse(config, fmt::format("exchange.{}.{}", name, misfit->key), misfit->why);
}

void check_strategy(const Config& config) {
#define X(strategy, ...) check_table(config, #strategy, config.exchange.strategy);
  ECHELON_STRATEGIES(X)
#undef X
}

// A power of two scales gradients without rounding.
void check_loss_scale(const Config& config) {
  const double scale = config.device.loss_scale;
  if (scale == 0 || std::exp2(std::round(std::log2(scale))) == scale) return;
  const double below = std::exp2(std::floor(std::log2(scale)));
  refuse(config, "device.loss_scale",
         fmt::format("device.loss_scale = {} is not a power of two; nearest valid: {} or {}", scale, below, 2 * below));
}

void check_pace(const Config& config) {
  const double pace_ms = config.device.pace_ms;
  if (pace_ms >= 0 || pace_ms == -1) return;
  refuse(
      config, "device.pace_ms",
      fmt::format("device.pace_ms = {} is not a time; nearest valid: 0 (off), -1 (by paced_table and the rates) or a "
                  "number of milliseconds",
                  pace_ms));
}

void check_network(const Config& config) {
  if (config.network.rate.empty()) return;
  if (strategy_traits(config.exchange.strategy).all_reduces() && algorithm_traits(config.exchange.algorithm).library)
    refuse(config, "network.rate",
           fmt::format(
               "network.rate cannot be combined with exchange.algorithm = \"{}\": the library's own messages cannot be "
               "slowed down; nearest valid: exchange.algorithm = \"ring\"",
               config.exchange.algorithm));
  try {
    (void)parse_rates(config.network.rate, "network.rate");
  } catch (const ConfigError& error) {
    refuse(config, "network.rate", error.what());
  }
}

void check_label_weights(const Config& config) {
  const LabelKeys& labels = config.model.labels;
  if (labels.inverse_frequency > 0 && !labels.class_weights.empty())
    refuse(config, "model.inverse_frequency",
           "model.inverse_frequency and model.class_weights both give the weights of classes; keep one");
}

void check_goal(const Config& config) {
  const GoalConfig& goal = config.goal;
  if (config.checkpoint.keep_best != GoalMetric::none && config.data.test.empty())
    refuse(config, "checkpoint.keep_best", "checkpoint.keep_best is a figure of evaluations, which need data.test");
  if (goal.metric == GoalMetric::none) {
    if (goal.target > 0 || goal.stop || goal.most_samples > 0)
      refuse(config,
             goal.target > 0 ? "goal.target"
             : goal.stop     ? "goal.stop"
                             : "goal.most_samples",
             "[goal] has no metric to reach: set goal.metric, e.g. \"test_accuracy\"");
  } else if (config.data.test.empty()) {
    refuse(config, "goal.metric", "goal.metric is a figure of evaluations, which need data.test");
  } else if (goal.target == 0 || (goal_rises(goal.metric) && goal.target > 1)) {
    refuse(config, "goal.target",
           fmt::format(
               "goal.target = {} is not a valid {}", goal.target,
               goal_rises(goal.metric)
                   ? fmt::format("{}: above 0 and at most 1, e.g. 0.9",
                                 goal.metric == GoalMetric::test_accuracy ? "accuracy" : goal_metric_name(goal.metric))
                   : "loss, perplexity or error: above 0"));
  }
  for (const auto& [key, metric] :
       {std::pair("goal.metric", goal.metric), std::pair("checkpoint.keep_best", config.checkpoint.keep_best)})
    for (const auto& [of, needed] :
         {std::pair(GoalMetric::test_mean_iou, "mean_iou"), std::pair(GoalMetric::test_macro_f1, "macro_f1"),
          std::pair(GoalMetric::test_auc, "auc"), std::pair(GoalMetric::test_mae, "mae"),
          std::pair(GoalMetric::test_r2, "r2")})
      if (const std::vector<std::string>& metrics = config.evaluate.metrics;
          metric == of && std::find(metrics.begin(), metrics.end(), needed) == metrics.end())
        refuse(config, key,
               fmt::format("{} = \"{}\" is measured only if evaluate.metrics names \"{}\"", key,
                           goal_metric_name(metric), needed));
  if (goal.metric != GoalMetric::none && config.evaluate.by == EvaluateBy::aside)
    refuse(config, "evaluate.by",
           "evaluate.by = \"aside\" leaves evaluations to another job, and goal.metric is judged by the run itself; "
           "nearest valid: \"all\" or \"first\"");
  if (goal.greatest_cost > 0 && config.cost.node_hour == 0 && config.cost.rank_hour == 0)
    refuse(
        config, "goal.greatest_cost",
        "goal.greatest_cost needs the price of an hour of a host or of a rank: set cost.node_hour or cost.rank_hour");
}

// Checks numbers and layers that keys of [parallel] require. Choices that exclude each other are in combinations.cpp.
void check_parallel(const Config& config) {
  const ParallelConfig& parallel = config.parallel;
  const bool chosen = parallel.split == "auto";
  const bool split = parallel.pipeline > 1 || parallel.tensor > 1 || parallel.space > 1;
  for (const LayerConfig& layer : config.model.layers)
    if (layer.stage >= 0 && parallel.pipeline == 1 && !chosen)
      refuse(
          config, "model.layers",
          fmt::format(
              "the layer at {} names a stage, but parallel.pipeline is 1; leave 'stage' out or set parallel.pipeline",
              layer.where));
  if (split && config.data.as_replicas > 0 && !config.batch.shares.empty())
    refuse(config, "batch.shares",
           "batch.shares cannot be combined with data.as_replicas over split models ([parallel]), because "
           "data.as_replicas then takes micro-batches of one size in turn; leave batch.shares out");
}

}  // namespace

void check_combinations(const Config& config) {
  check_model(config);
  if (config.data.train.empty())
    refuse(config, "data",
           "data.train is missing: a folder, file or pattern of HDF5 shards (see `echelon data import`)");
  if (const auto misfit = config.data.hdf5.misfit()) refuse(config, "data.hdf5." + misfit->key, misfit->why);
  if (const auto misfit = config.data.image_misfit()) refuse(config, "data." + misfit->key, misfit->why);
  check_batch(config);
  check_warmup(config);
  check_buckets(config);
  check_label_weights(config);
  refuse_unfit_keys(config);
  if (config.train.epochs == 0 && config.train.steps == 0)
    refuse(config, "train.epochs",
           "train.epochs and train.steps are both 0: nothing would be trained; set one of them");
  check_optimiser(config);
  check_parallel(config);
  check_loss_scale(config);
  check_strategy(config);
  check_pace(config);
  check_network(config);
  check_goal(config);
  (void)trace_steps(config);
  (void)faults_of(config);
  if (config.run.results.empty())
    refuse(config, "run.results", "run.results is empty: it must name the folder of all runs, for example \"results\"");
  if (config.train.reproducible) check_reproducible(config);
  refuse_clashes(config);
}

}  // namespace echelon::inline config
