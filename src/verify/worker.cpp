// SPDX-License-Identifier: Apache-2.0
#include "verify/worker.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "base/tensor_region.hpp"
#include "train/server_step.hpp"

namespace echelon::verify {
namespace {

// The same channels as in Attempt.
constexpr int kSumsChannel = 2, kStrategyChannel = 3;
constexpr int kNormsChannel = 1, kCutsChannel = 2;  // channels of a model group

template <class T>
void pack(const std::vector<double>& values, std::vector<std::byte>& bytes) {
  bytes.resize(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

// `values`: tensors of `shape` one behind another.
std::vector<double> cut(const std::vector<double>& values, const Shape& shape, const SlabRange& part) {
  if (!part.any()) return values;
  const std::int64_t n = static_cast<std::int64_t>(values.size()) / shape.elems();
  const Shape taken = part.shape_of(shape).prepended(n);
  Shape offset = taken;
  for (int axis = 0; axis < offset.rank(); ++axis) offset = offset.with(axis, axis == part.axis + 1 ? part.begin : 0);
  std::vector<double> own(static_cast<std::size_t>(taken.elems()));
  copy_from_whole({taken, shape.prepended(n), offset}, sizeof(double), values.data(), own.data());
  return own;
}

RankGroups place_of(const Config& config, Engine& world) {
  const Roles roles = roles_of(config, world.size());
  const Transport& transport = world.transport();
  return {roles, mesh_of_workers(config, roles, transport.hosts(), transport.host_names()), world};
}

// A single epoch without an end, in the order of the ids.
SamplePlan endless(const BatchPlan& batch) {
  SamplePlanRequest request;
  request.file_samples = {std::int64_t{1} << 40};
  request.file_chunk_rows = {std::int64_t{1} << 40};
  request.batch = batch.per_replica;
  request.sharding = Sharding::record;
  request.shuffle = false;
  return SamplePlan(std::move(request));
}

}  // namespace

void PlainSource::hand(const PlainBatch& batch, std::int64_t step) {
  const auto reals = [&](const std::vector<double>& values, std::vector<std::byte>& bytes) {
    with_float(dtype_, [&]<class T>(T) { pack<T>(values, bytes); });
  };
  const std::vector<double> samples = cut(batch.samples, form_.shape, slab_.samples),
                            labels = cut(batch.labels, form_.label, slab_.labels);
  form_.tokens() ? pack<std::int32_t>(samples, samples_) : reals(samples, samples_);
  form_.classes > 0 ? pack<std::int32_t>(labels, labels_) : reals(labels, labels_);
  reals(cut(batch.weights, form_.label, slab_.labels), weights_);
  pack<std::int32_t>(batch.lengths, lengths_);
  pack<std::int32_t>(batch.target, target_);
  pack<std::int32_t>(batch.ids, ids_);
  const auto numbers = [](const std::vector<std::byte>& bytes) {
    return reinterpret_cast<const std::int32_t*>(bytes.data());
  };
  batch_ = {.step = step,
            .n = batch.n(),
            .samples = samples_.data(),
            .labels = labels_.data(),
            .weights = weights_.data(),
            .lengths = numbers(lengths_),
            .target = numbers(target_),
            .ids = numbers(ids_),
            .weight = batch.weight()};
}

Standing::Standing(Engine& the_world, const Config& config, BatchPlan batch, const Graph& graph)
    : world(the_world), rank_groups(place_of(config, world)) {
  ECHELON_CHECK_EQ(rank_groups.mesh().replicas(), static_cast<int>(batch.micro.size()));
  SamplePlan shards = endless(batch);
  plan.emplace(
      RunPlan{.replicas = rank_groups.mesh().replicas(),
              .batch = std::move(batch),
              .train = {},
              .test = {},
              .shards = std::move(shards),
              .graph = graph,
              .bucket_graphs = {},
              .node_costs = {},
              .part = part_of(graph, config.parallel, rank_groups.coord(), node_flops(graph, config.device.dtype)),
              .rank_batches = {}});
}

Worker::Worker(Standing& standing, const Config& config, std::unique_ptr<Device> device, std::uint64_t seed,
               const LossScaling& scaling, std::int64_t step, std::vector<LedgerBytes> recorded)
    : device_(std::move(device)),
      activation_exchange_(*device_, standing.rank_groups.engines(), standing.rank_groups.mesh(),
                           standing.rank_groups.coord(), standing.plan->part.cuts, config.device.dtype, kCutsChannel,
                           *std::max_element(standing.plan->batch.micro.begin(), standing.plan->batch.micro.end())),
      arenas_(*device_, standing.plan->part.graph.parameters(), wide_of(config.device.dtype)),
      part_norms_(standing.rank_groups.mesh().splits()
                      ? std::make_unique<PartNorms>(standing.rank_groups.model(), standing.rank_groups.shards(),
                                                    kNormsChannel, standing.rank_groups.coord().shard == 0)
                      : nullptr),
      optimiser_(config.optimiser, arenas_, scaling, part_norms_.get()),
      strategy_(make_strategy(config.exchange, {.arenas = arenas_,
                                                .optimiser = optimiser_,
                                                .engine = standing.exchange(),
                                                .first_channel = kStrategyChannel,
                                                .role = standing.rank_groups.role(),
                                                .steps_per_epoch = standing.plan->steps_per_epoch,
                                                .recorded = std::move(recorded)})),
      batch_norm_sum_(*device_, standing.rank_groups.data_parallel_peers(), kSumsChannel, *strategy_, config.exchange,
                      config.model.batch_norm_group) {
  arenas_.initialise(seed);
  if (standing.serves()) {
    stepper_ = std::make_unique<ServerStep>(*strategy_, phase_);
    return;
  }
  const auto open = [&](const LoaderOptions& options) {
    auto source = std::make_unique<PlainSource>(form_of(standing.plan->graph), options.dtype, options.slab);
    source_ = source.get();
    return source;
  };
  auto runner = std::make_unique<StepRunner>(StepperParts{config,
                                                          *standing.plan,
                                                          standing.rank_groups,
                                                          arenas_,
                                                          *strategy_,
                                                          optimiser_,
                                                          batch_norm_sum_,
                                                          activation_exchange_,
                                                          phase_,
                                                          {.step = step, .epoch = 0, .step_in_epoch = step}},
                                             open);
  runner_ = runner.get();
  stepper_ = std::move(runner);
}

StepResult Worker::run(const StepInfo& info, const PlainBatch& batch) {
  if (source_) source_->hand(batch, info.step);
  return stepper_->run(info, [](const LossSums&) {});
}

void Worker::visit_state(StateVisitor& visitor) {
  arenas_.visit_state(visitor);
  optimiser_.visit_state(visitor);
  strategy_->visit_state(visitor);
  stepper_->visit_state(visitor);
}

}  // namespace echelon::verify
