#include "train/run_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "model/build.hpp"

namespace echelon {
namespace {

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

std::map<std::int64_t, Graph> graphs_of(const Config& config, const Dataset& train, const ShardPlan& shards,
                                        const Graph& graph) {
  std::map<std::int64_t, Graph> graphs;
  for (const std::int64_t bucket : shards.buckets()) {
    const auto [place, fresh] = graphs.emplace(bucket, build_model(config.model, train.form(bucket)));
    const std::vector<Parameter>&all = graph.parameters().all(), &own = place->second.parameters().all();
    for (std::size_t i = 0; i < std::max(all.size(), own.size()); ++i)
      if (i >= all.size() || i >= own.size() || all[i].name != own[i].name || all[i].shape != own[i].shape)
        throw ConfigError(
            fmt::format("data.buckets: parameter '{}' would be another for sequences of {} steps than of {}; leave "
                        "data.buckets out",
                        i < all.size() ? all[i].name : own[i].name, bucket, train.length()));
  }
  return graphs;
}

void check_augmentation(const Config& config, const Dataset& train) {
  const DataConfig& data = config.data;
  if ((data.augment_crop_padding > 0 || data.augment_flip) && train.kind != DataKind::samples)
    throw ConfigError(fmt::format("data.augment_crop_padding and data.augment_flip are for images; {} holds {}",
                                  data.train, name_of(train.kind)));
}

void check_sparse(const Config& config, const ParameterSet& parameters) {
  const std::vector<Parameter>& all = parameters.all();
  const bool any = std::any_of(all.begin(), all.end(), [](const Parameter& p) { return p.sparse; });
  if (config.optimiser.lazy && !any)
    throw ConfigError("optimizer.lazy is for sparse embeddings; this model has none: leave it out");
  if (config.train.reproducible && any)
    throw ConfigError(
        "train.reproducible = true sums whole tables of embeddings, and this model's are sparse; write "
        "model.dense_embeddings = true");
}

std::vector<int> RunPlan::sources(int replica) const {
  if (replica >= replicas) return {};
  if (replicas == shards.replicas()) return {replica};
  std::vector<int> all(static_cast<std::size_t>(shards.replicas()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

RunPlan plan_run(const Config& config, const Mesh& mesh, const MeshSeat& seat, const std::vector<double>& costs) {
  Dataset train = open_dataset(config.data.train, config.data);
  check_augmentation(config, train);
  std::optional<Dataset> test;
  if (!config.data.test.empty()) {
    test = open_dataset(config.data.test, config.data);
    see_alike(*test, train);
  }
  BatchPlan batch = batch_of(config, mesh.replicas(), train.samples());
  ShardPlan shards(plan_request(train, config.data, batch.per_replica, config.seed));
  Graph graph = build_model(config.model, train.form());
  check_sparse(config, graph.parameters());
  std::map<std::int64_t, Graph> bucket_graphs = graphs_of(config, train, shards, graph);
  const std::int64_t steps_per_epoch = shards.steps_per_epoch();
  const std::int64_t total = total_steps_of(config.train, steps_per_epoch);
  if (total == 0) throw ConfigError("train.epochs and train.steps are both 0: there is nothing to train");
  Part part = part_of(graph, config.parallel, seat, costs.empty() ? node_flops(graph, config.device.dtype) : costs);
  return {.replicas = mesh.replicas(),
          .batch = std::move(batch),
          .train = std::move(train),
          .test = std::move(test),
          .shards = std::move(shards),
          .graph = std::move(graph),
          .bucket_graphs = std::move(bucket_graphs),
          .part = std::move(part),
          .steps_per_epoch = steps_per_epoch,
          .total_steps = total};
}

ShardPlan evaluation_plan(const Dataset& dataset, const Config& config, int ranks) {
  DataConfig whole;
  whole.sharding = Sharding::record;
  whole.ragged = Ragged::zero_weight;
  whole.shuffle = false;
  whole.order = config.data.order;
  const std::int64_t most = config.evaluate.batch, samples = dataset.samples();
  std::vector<std::int64_t> batches;
  if (whole.order == Order::stream) {
    const std::int64_t rows = std::min(most, samples), parts = std::min<std::int64_t>(ranks, rows);
    for (std::int64_t r = 0; r < parts; ++r) batches.push_back(rows / parts + (r < rows % parts ? 1 : 0));
  } else {
    // Reproducible: batches of one size for every number of ranks.
    const std::int64_t cuts =
        std::min<std::int64_t>(config.train.reproducible ? config.train.micro_shards : ranks, samples);
    const std::int64_t batch = std::min(most, (samples + cuts - 1) / cuts);
    batches.assign(static_cast<std::size_t>(std::min<std::int64_t>(ranks, (samples + batch - 1) / batch)), batch);
  }
  return ShardPlan(plan_request(dataset, whole, batches, 0));
}

std::int64_t largest_batch(const Config& config, const RunPlan& plan) {
  std::int64_t most = *std::max_element(plan.batch.micro.begin(), plan.batch.micro.end());
  if (!plan.test) return most;
  const ShardPlan evaluation = evaluation_plan(*plan.test, config, plan.replicas);
  for (int replica = 0; replica < evaluation.replicas(); ++replica) most = std::max(most, evaluation.batch(replica));
  return most;
}

LoaderOptions evaluation_loading(const Config& config, DType dtype, int replica) {
  LoaderOptions options;
  options.replica = replica;
  options.dtype = dtype;
  options.buffer_bytes = static_cast<std::int64_t>(config.data.buffer_mb * (1 << 20));
  options.end_epoch = 1;
  return options;
}

}  // namespace echelon
