#include "train/run_plan.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/build.hpp"

namespace echelon {
namespace {

// The test data must be what the model was built for.
void require_alike(const Dataset& train, const Dataset& test, const Config& config) {
  if (test.sample_shape != train.sample_shape || test.classes != train.classes)
    throw DataError(fmt::format("{}: samples {} of {} classes, the training data has {} of {}", config.data.test,
                                test.sample_shape.text(), test.classes, train.sample_shape.text(), train.classes));
}

std::int64_t total_steps_of(const TrainConfig& train, std::int64_t steps_per_epoch) {
  const std::int64_t by_epochs = train.epochs * steps_per_epoch;
  if (train.steps > 0 && (by_epochs == 0 || train.steps < by_epochs)) return train.steps;
  return by_epochs;
}

// By replica of the plan: where one rank stands for several replicas, as it would be with a rank for each.
BatchPlan batch_of(const Config& config, int ranks, std::int64_t samples) {
  BatchPlan batch = derive_batch(config, ranks, samples);
  if (config.data.as_replicas == 0) return batch;
  Config each = config;
  each.data.as_replicas = 0;
  return derive_batch(each, static_cast<int>(config.data.as_replicas), samples);
}

}  // namespace

std::vector<int> RunPlan::sources(int rank) const {
  std::vector<int> replicas;
  if (ranks == shards.replicas()) return {rank};
  for (int replica = 0; replica < shards.replicas(); ++replica) replicas.push_back(replica);
  return replicas;
}

RunPlan plan_run(const Config& config, int ranks) {
  Dataset train = open_dataset(config.data.train);
  std::optional<Dataset> test;
  if (!config.data.test.empty()) {
    test = open_dataset(config.data.test);
    require_alike(train, *test, config);
    see_alike(*test, train);
  }
  BatchPlan batch = batch_of(config, ranks, train.samples());
  ShardPlan shards(plan_request(train, config.data, batch.per_replica, config.seed));
  Graph graph = build_model(config.model, train.form());
  const std::int64_t steps_per_epoch = shards.steps_per_epoch();
  const std::int64_t total = total_steps_of(config.train, steps_per_epoch);
  if (total == 0) throw ConfigError("train.epochs and train.steps are both 0: there is nothing to train");
  return {
      ranks, std::move(batch), std::move(train), std::move(test), std::move(shards), std::move(graph), steps_per_epoch,
      total};
}

ShardPlan evaluation_plan(const Dataset& dataset, int replicas, std::int64_t batch) {
  DataConfig whole;
  whole.sharding = Sharding::record;
  whole.ragged = Ragged::zero_weight;
  whole.shuffle = false;
  const std::vector<std::int64_t> batches(static_cast<std::size_t>(replicas), batch);
  return ShardPlan(plan_request(dataset, whole, batches, 0));
}

}  // namespace echelon
