// SPDX-License-Identifier: Apache-2.0
#include "train/run_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "base/text.hpp"
#include "config/refuse.hpp"
#include "config/trace_steps.hpp"
#include "config/traits/algorithms.hpp"
#include "config/traits/strategies.hpp"
#include "data/augment_fit.hpp"
#include "data/class_mix.hpp"
#include "exchange/entry.hpp"
#include "model/build.hpp"
#include "train/class_counter.hpp"

namespace echelon::inline train {
namespace {

void check_shared_memory(const Config& config, const Mesh& mesh) {
  const ExchangeConfig& exchange = config.exchange;
  if (!algorithm_traits(exchange.algorithm).in_memory || !strategy_traits(exchange.strategy).all_reduces()) return;
  for (int replica = 1; replica < mesh.replicas(); ++replica)
    if (mesh.host_of(replica) != mesh.host_of(0))
      refuse(config, "exchange.algorithm",
             fmt::format("exchange.algorithm = \"{}\" sums in the memory of one host, and replicas are on several; "
                         "nearest valid: \"hierarchical\" with exchange.inner = \"{}\"",
                         exchange.algorithm, exchange.algorithm));
}

std::int64_t total_steps_of(const TrainConfig& train, const SamplePlan& shards) {
  const std::int64_t by_epochs = shards.steps_before(train.epochs);
  if (train.steps > 0 && (by_epochs == 0 || train.steps < by_epochs)) return train.steps;
  return by_epochs;
}

// A graph for each length that steps are padded to (data.buckets). All share the arenas with `graph`: ConfigError where
// their parameters would differ.
std::map<std::int64_t, Graph> graphs_of(const Config& config, const Dataset& train, const SamplePlan& shards,
                                        const Graph& graph) {
  std::map<std::int64_t, Graph> graphs;
  for (const std::int64_t bucket : shards.buckets()) {
    const auto [place, fresh] = graphs.emplace(bucket, build_model(config.model, train.form(bucket)));
    const std::vector<Parameter> all = graph.parameters().with_frozen(), own = place->second.parameters().with_frozen();
    for (std::size_t i = 0; i < std::max(all.size(), own.size()); ++i)
      if (i >= all.size() || i >= own.size() || all[i].name != own[i].name || all[i].shape != own[i].shape)
        throw ConfigError(
            fmt::format("data.buckets: parameter '{}' would have a different form for sequences of {} steps than of "
                        "{}; leave data.buckets out",
                        i < all.size() ? all[i].name : own[i].name, bucket, train.length()));
  }
  return graphs;
}

// ConfigError where optimizer.lazy has no sparse embedding to be lazy about.
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

}  // namespace

namespace {

// ConfigError if a stage trains nothing and the strategy has servers, each of which holds parts of every stage.
void check_stages(const Config& config, const Graph& graph, const std::vector<int>& stages) {
  if (!strategy_traits(config.exchange.strategy).reads.contains("servers")) return;
  std::vector<std::int64_t> trained(static_cast<std::size_t>(config.parallel.pipeline));
  for (std::size_t node = 0; node < graph.nodes().size(); ++node)
    for (const int p : graph.nodes()[node].parameters)
      if (const Parameter& parameter = graph.parameters()[p]; !parameter.frozen)
        trained[static_cast<std::size_t>(stages[node])] += parameter.elems();
  const auto empty = std::find(trained.begin(), trained.end(), 0);
  if (empty == trained.end()) return;
  refuse(config, config.model.freeze.empty() ? "parallel.pipeline" : "model.freeze",
         fmt::format("stage {} of parallel.pipeline = {} has nothing to train, but exchange.strategy = \"{}\" has "
                     "servers for every stage; train a layer of that stage, or use a strategy without servers, such as "
                     "\"synchronous\"",
                     empty - trained.begin(), config.parallel.pipeline, config.exchange.strategy));
}

}  // namespace

RunInputs open_inputs(const Config& config) {
  Dataset train = open_dataset(config.data.train, config.data);
  check_augmentation(config, train);
  train.mixes = config.data.augment.mixes();
  std::optional<Dataset> test;
  if (!config.data.test.empty()) {
    test = open_dataset(config.data.test, config.data.of_test());
    see_alike(*test, train);
  }
  demand_labels(train, config.model);
  train.label_sample = std::make_shared<const LabelSample>(train);
  weigh_by_frequency(train, config.model);
  if (test) demand_labels(*test, config.model);
  if (test) test->label_weights = train.label_weights;
  if (test) static_cast<void>(LabelSample(*test));  // bad labels are refused now, not at the first evaluation
  Graph graph = build_model(config.model, train.form());
  check_sparse(config, graph.parameters());
  check_metrics(config, graph);
  return {.train = std::move(train), .test = std::move(test), .graph = std::move(graph)};
}

Mesh mesh_of_workers(const Config& config, const Roles& roles, std::vector<int> hosts,
                     const std::vector<std::string>& host_names) {
  hosts.resize(static_cast<std::size_t>(roles.workers));
  return {config.parallel, hosts, host_names};
}

Part RunPlan::part_at(const ParallelConfig& parallel, const MeshCoord& coord) const {
  return part_of(graph, parallel, coord, node_costs);
}

Footprint RunPlan::memory_of(const Config& config, const Part& of, const MeshCoord& coord) const {
  if (ranks_of_replica(config.parallel) > 1) return footprint_of(config, of, coord, rank_batches);
  std::vector<const Graph*> by_length;
  for (const auto& [bucket, padded] : bucket_graphs) by_length.push_back(&padded);
  return footprint_of(config, graph, rank_batches, by_length);
}

double RunPlan::weight_of_epoch(std::int64_t epoch) const {
  double weight = 0;
  for (std::int64_t step = 0; step < shards.steps_in(epoch); ++step) weight += shards.weight(epoch, step);
  return weight;
}

std::vector<int> RunPlan::sources(int replica) const {
  if (replica >= replicas) return {};
  if (replicas == shards.replicas()) return {replica};
  std::vector<int> all(static_cast<std::size_t>(shards.replicas()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

RunPlan plan_run(const Config& config, const Mesh& mesh, const MeshCoord& coord, RunInputs inputs,
                 std::vector<double> costs) {
  check_shared_memory(config, mesh);
  const SampleCounts samples = inputs.samples(config.data);
  BatchPlan batch = plan_batch(config, mesh.replicas(), samples.train);
  RankBatches rank_batches = busiest_batches(config, batch, mesh.replicas(), samples.test, exchange_arenas);
  SamplePlanRequest request = plan_request(inputs.train, config.data, batch.per_replica, config.seed);
  request.warmup = {.replicas = config.exchange.warmup_replicas,
                    .steps = config.exchange.warmup_steps,
                    .epochs = config.exchange.warmup_epochs,
                    .each_epoch = config.exchange.warmup_each_epoch};
  if (std::ssize(request.batch) == mesh.replicas())
    for (int replica = 0; replica < mesh.replicas(); ++replica) request.nodes.push_back(mesh.host_of(replica));
  SamplePlan shards(std::move(request));
  std::map<std::int64_t, Graph> bucket_graphs = graphs_of(config, inputs.train, shards, inputs.graph);
  const std::int64_t steps_per_epoch = shards.steps_per_epoch();
  const std::int64_t total = total_steps_of(config.train, shards);
  if (total == 0) throw ConfigError("train.epochs and train.steps are both 0: there is nothing to train");
  check_trace_steps(config, total);
  if (config.checkpoint.keep_best == GoalMetric::test_accuracy && !inputs.graph.counts_correct())
    refuse(config, "checkpoint.keep_best",
           "checkpoint.keep_best = \"test_accuracy\": this model's loss counts no correct predictions; nearest valid: "
           "\"test_loss\"");
  if (const std::int64_t group = config.model.batch_norm_group; group > 0 && mesh.replicas() % group != 0)
    refuse(
        config, "model.batch_norm_group",
        fmt::format("model.batch_norm_group = {} does not divide the {}; nearest valid: {}, or 0 for all", group,
                    counted(mesh.replicas(), "replica"), std::gcd(group, static_cast<std::int64_t>(mesh.replicas()))));
  if (costs.empty()) costs = node_flops(inputs.graph, config.device.dtype);
  Part part = part_of(inputs.graph, config.parallel, coord, costs);
  if (mesh.pipeline() > 1) check_stages(config, inputs.graph, part.stages);
  return {.replicas = mesh.replicas(),
          .batch = std::move(batch),
          .train = std::move(inputs.train),
          .test = std::move(inputs.test),
          .shards = std::move(shards),
          .graph = std::move(inputs.graph),
          .bucket_graphs = std::move(bucket_graphs),
          .node_costs = std::move(costs),
          .part = std::move(part),
          .rank_batches = std::move(rank_batches),
          .steps_per_epoch = steps_per_epoch,
          .total_steps = total};
}

namespace {

SamplePlan evaluation_in(const Dataset& dataset, const Config& config, std::vector<std::int64_t> batches,
                         double fraction = 1) {
  DataConfig whole;
  whole.fraction = fraction;
  whole.sharding = Sharding::record;
  whole.ragged = Ragged::zero_weight;
  whole.shuffle = false;
  whole.order = config.data.order;
  return SamplePlan(plan_request(dataset, whole, std::move(batches), config.seed));
}

}  // namespace

SamplePlan evaluation_plan(const Dataset& dataset, const Config& config, int ranks) {
  return evaluation_in(dataset, config, evaluation_batches(config, dataset.samples(), ranks));
}

SamplePlan lone_evaluation_plan(const Dataset& dataset, const Config& config, int ranks) {
  const bool stream = config.data.order == Order::stream;
  return evaluation_in(dataset, config, {evaluation_batches(config, dataset.samples(), stream ? 1 : ranks).front()});
}

SamplePlan training_evaluation_plan(const Dataset& train, const Config& config, std::vector<std::int64_t> batches) {
  DataConfig share = config.data;
  share.fraction *= config.evaluate.train_fraction;
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(1, samples_used(train, share)));
  batches.resize(std::min(batches.size(), most));
  return evaluation_in(train, config, std::move(batches), share.fraction);
}

LoaderOptions training_loading(const Config& config) {
  return {.prefetch = static_cast<int>(config.data.prefetch),
          .threads = static_cast<int>(config.data.threads),
          .buffer_bytes = static_cast<std::int64_t>(config.data.buffer_mb * (1 << 20)),
          .augmentation = augmentation_of(config.data, config.seed)};
}

LoaderOptions evaluation_loading(const Config& config, DType dtype, int replica) {
  LoaderOptions options;
  options.replica = replica;
  options.dtype = dtype;
  options.buffer_bytes = static_cast<std::int64_t>(config.data.buffer_mb * (1 << 20));
  options.threads = static_cast<int>(config.data.threads);
  options.end_epoch = 1;
  return options;
}

}  // namespace echelon::inline train
