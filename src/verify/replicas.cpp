// SPDX-License-Identifier: Apache-2.0
#include "verify/replicas.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <span>
#include <thread>

#include "base/check.hpp"
#include "base/hash_rng.hpp"
#include "comm/group.hpp"
#include "config/keys.hpp"
#include "exchange/facets.hpp"
#include "model/build.hpp"
#include "model/zoo/zoo.hpp"
#include "verify/random.hpp"
#include "verify/ranks.hpp"
#include "verify/state_image.hpp"
#include "verify/trainer.hpp"
#include "verify/worker.hpp"

namespace echelon::verify {
namespace {

constexpr std::uint64_t kSamples = 20;  // key of the stream of samples
constexpr int kControlChannel = 0, kBroadcastChannel = 1;

PlainBatch reverse_of(const PlainBatch& batch) {
  PlainBatch reversed;
  const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (std::int64_t i = batch.n() - 1; i >= 0; --i) {
    const PlainBatch one = part_of(batch, i, 1);
    append(reversed.samples, one.samples);
    append(reversed.labels, one.labels);
    append(reversed.weights, one.weights);
    append(reversed.target, one.target);
    append(reversed.lengths, one.lengths);
    append(reversed.ids, one.ids);
  }
  return reversed;
}

}  // namespace

PlainBatch step_batch(const ReplicaRun& run, std::int64_t step) {
  const std::int64_t global = std::accumulate(run.shares.begin(), run.shares.end(), std::int64_t{0});
  PlainBatch batch =
      hashed_batch(form_of(run.graph), run.first_id + (run.one_batch ? 0 : step * global), global, kSamples);
  if (run.holes)
    for (std::size_t i = 3; i < batch.weights.size(); i += 7) batch.weights[i] = 0;
  return batch;
}

ExchangeConfig exchange_of(const ReplicaRun& run) {
  ExchangeConfig config;
  config.strategy = run.strategy;
  config.algorithm = run.algorithm;
  config.reduction = run.reduction;
  config.servers = run.servers;
  config.server.ranks = run.server_ranks;
  config.server.partition = run.partition;
  config.averaging = run.averaging;
  config.elastic = run.elastic;
  config.asynchronous = run.asynchronous;
  config.stale_synchronous.bound = run.bound;
  config.gossip = run.gossip;
  config.backup = run.backup;
  config.strom = run.strom;
  config.codec = run.codec;
  config.density = run.density;
  config.tau = run.tau;
  config.error_feedback = run.error_feedback;
  config.code_sums = run.code_sums;
  config.codec_warmup_steps = run.codec_warmup;
  config.bucket_mb = run.bucket_kb / 1024;
  config.segment_kb = 0.25;
  config.overlap = run.overlap;
  config.sparse_density = run.sparse_density;
  return config;
}

OptimiserConfig optimiser_of(const ReplicaRun& run) {
  OptimiserConfig config;
  config.rule = run.rule;
  config.clip_norm = run.clip_norm;
  config.learning_rate = run.learning_rate;
  config.momentum = run.momentum;
  config.weight_decay = run.weight_decay;
  config.nesterov = run.nesterov;
  config.momentum_before_coding = run.momentum_before_coding;
  config.lazy = run.lazy;
  return config;
}

Config config_of(const ReplicaRun& run) {
  Config config;
  config.seed = 1;
  config.device.kind = run.device;
  config.device.dtype = is_half(run.activations) ? run.activations : run.dtype;
  config.optimiser = optimiser_of(run);
  config.exchange = exchange_of(run);
  config.batch.global = std::accumulate(run.shares.begin(), run.shares.end(), std::int64_t{0});
  config.batch.accumulation = run.accumulation;
  config.train.reproducible = run.micro_shards > 0;
  if (run.micro_shards > 0) config.train.micro_shards = run.micro_shards;
  apply_sets(config, run.sets);
  return config;
}

BatchPlan batch_plan_of(const ReplicaRun& run) {
  BatchPlan plan;
  plan.global = std::accumulate(run.shares.begin(), run.shares.end(), std::int64_t{0});
  plan.accumulation = run.micro_shards > 0 ? run.micro_shards / run.replicas() : run.accumulation;
  plan.per_replica = run.shares;
  for (const std::int64_t share : run.shares) {
    ECHELON_CHECK_EQ(share % plan.accumulation, 0, "accumulation divides the share");
    plan.micro.push_back(share / plan.accumulation);
  }
  return plan;
}

std::unique_ptr<Device> device_of(const ReplicaRun& run, int rank) {
  if (open_other_device != nullptr)
    if (auto device = open_other_device(run, rank)) return device;
  return open_device(run.device, {.index = rank});
}

namespace {

// Every rank starts with its own weights.
std::unique_ptr<Worker> worker_of(const ReplicaRun& run, const Config& config, Standing& standing, std::int64_t step) {
  const int rank = standing.world.rank();
  std::vector<LedgerBytes> recorded;
  if (!run.recorded.empty()) recorded = run.recorded.at(static_cast<std::size_t>(rank)).at(step > 0 ? 1 : 0);
  return std::make_unique<Worker>(standing, config, device_of(run, rank), 1 + static_cast<std::uint64_t>(rank),
                                  run.scaling, step, std::move(recorded));
}

// `orders` receives the orders of the attempt that ends here.
void resume(std::unique_ptr<Worker>& worker, const ReplicaRun& run, const Config& config, Standing& standing,
            ServedOrders& orders) {
  StateImage image;
  join_meeting(worker->strategy());
  worker->strategy().drain();
  worker->strategy().gather_state();
  worker->visit_state(image);
  orders.push_back(take_ledgers(worker->strategy()));
  worker = nullptr;
  Group ranks(standing.exchange(), kControlChannel);
  image.each_scalar([&](std::span<std::byte> scalar) { ranks.broadcast(scalar.data(), scalar.size(), 0); });
  ranks.barrier();  // no first message may reach a machine that is being destroyed
  worker = worker_of(run, config, standing, run.resume_at);
  image.load();
  worker->visit_state(image);
}

}  // namespace

namespace {

void pause(const ReplicaRun& run, int rank, std::int64_t step) {
  const HashRng random = HashRng(test_seed(), "pauses").at(static_cast<std::uint64_t>(rank));
  const double pause_s = run.pause_s * random.uniform(static_cast<std::uint64_t>(step)) + (rank == 0 ? run.slow_s : 0);
  if (pause_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(pause_s));
}

}  // namespace

ReplicaRun on_one_replica(ReplicaRun run, bool groups) {
  const std::int64_t all = std::accumulate(run.shares.begin(), run.shares.end(), std::int64_t{0});
  run.accumulation = groups ? run.accumulation * run.replicas() : 1;
  run.shares = {all};
  run.servers = run.server_ranks = 0;
  return run;
}

ReplicaResult train_replica(std::unique_ptr<Transport> transport, const ReplicaRun& run) {
  Engine engine(std::move(transport));
  ECHELON_CHECK_EQ(engine.size(), run.ranks());
  const Config config = config_of(run);
  Standing standing(engine, config, batch_plan_of(run), run.graph);
  standing.plan->steps_per_epoch = run.steps_per_epoch;
  auto worker = worker_of(run, config, standing, 0);
  broadcast_weights(worker->arenas(), standing.exchange(), kBroadcastChannel);
  const auto rank = static_cast<std::ptrdiff_t>(standing.serves() ? 0 : engine.rank());
  const std::int64_t share = run.shares[static_cast<std::size_t>(rank)];
  const std::int64_t first = std::accumulate(run.shares.begin(), run.shares.begin() + rank, std::int64_t{0});

  Group group(standing.rank_groups.peers(), kControlChannel);
  ReplicaResult result;
  StepResult last;
  std::vector<TakenStep> taken;
  ServedOrders orders;
  for (std::int64_t step = 0; step < run.steps; step = taken.back().next_step) {
    if (step == run.resume_at) resume(worker, run, config, standing, orders);
    pause(run, engine.rank(), step);
    const PlainBatch global = step_batch(run, step);
    PlainBatch local = part_of(global, first, share);
    if (run.reversed) local = reverse_of(local);
    last = worker->run({.step = step,
                        .learning_rate = run.learning_rate,
                        .weight = global.weight(),
                        .local_weight = local.weight(),
                        .meets = worker->strategy().progress().meets_after(step + 1, step + 1 == run.steps)},
                       local);
    ECHELON_CHECK(last.outcome.next_step > step && last.outcome.next_step <= run.steps, "step {} leads to step {}",
                  step, last.outcome.next_step);
    taken.push_back({step, last.outcome.next_step, last.outcome.contributed, last.outcome.skipped});
    result.skipped += last.outcome.skipped ? 1 : 0;
    result.gradient_norm = last.outcome.gradient_norm;
    result.drift = last.outcome.drift;
    result.residual_norm = last.outcome.codec.residual_norm;
    if (run.micro_shards > 0) {
      result.step_losses.push_back(last.losses.loss);
      group.sum(std::span(&result.step_losses.back(), 1));
    }
    if (step > 0) continue;
    join_meeting(worker->strategy());
    worker->strategy().drain();
    result.gradients = worker->gradients();
  }
  join_meeting(worker->strategy());
  worker->strategy().drain();
  result.sent_bytes = static_cast<double>(worker->strategy().wire().bytes_sent);
  result.formula_bytes = worker->strategy().formula_bytes_per_step();
  orders.push_back(take_ledgers(worker->strategy()));
  result.orders = {std::move(orders)};
  if (standing.serves()) return result;
  result.weights = worker->weights();
  result.loss = last.losses.loss;
  result.correct = last.losses.correct;
  result.checksums = {worker->arenas().checksum()};
  result.taken = {std::move(taken)};
  return result;
}

ReplicaResult train_replicas(const ReplicaRun& run) {
  std::vector<ReplicaResult> results(static_cast<std::size_t>(run.ranks()));
  run_ranks(run.ranks(), [&](std::unique_ptr<Transport> transport) {
    const auto rank = static_cast<std::size_t>(transport->rank());
    results[rank] = train_replica(std::move(transport), run);
  });
  ReplicaResult first = results.front();
  first.sent_bytes = 0;
  first.checksums.clear();
  first.taken.clear();
  first.orders.clear();
  for (const ReplicaResult& result : results) {
    first.sent_bytes += result.sent_bytes;
    first.all_losses += result.loss;
    if (!result.checksums.empty()) first.checksums.push_back(result.checksums.front());
    if (!result.taken.empty()) first.taken.push_back(result.taken.front());
    first.orders.push_back(result.orders.front());
  }
  return first;
}

double tensor_distance(const ParameterSet& parameters, const std::vector<double>& a, const std::vector<double>& b) {
  ECHELON_CHECK_EQ(a.size(), b.size());
  double worst = 0;
  for (const Parameter& p : parameters.all()) {
    double distance = 0, size = 0;
    for (std::int64_t i = p.begin; i < p.end(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (!std::isfinite(a[at]) || !std::isfinite(b[at])) return INFINITY;
      distance = std::max(distance, std::fabs(a[at] - b[at]));
      size = std::max(size, std::fabs(b[at]));
    }
    if (distance > 0) worst = std::max(worst, size == 0 ? INFINITY : distance / size);
  }
  return worst;
}

namespace {

LayerConfig layer(const std::string& type) {
  LayerConfig config;
  config.type = type;
  return config;
}

LayerConfig conv(std::int64_t channels, const std::string& name) {
  LayerConfig config = layer("conv");
  config.name = name;
  config.channels = channels;
  config.kernel = {3};
  config.padding = {1};
  config.bias = false;
  return config;
}

// A zoo model with its channels and units divided by `factor`.
Graph shrunken(const std::string& zoo, const SampleForm& form, std::int64_t factor = 4) {
  std::vector<LayerConfig> layers = zoo_layers(zoo, form);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].channels /= factor;
    if (layers[i].units != form.classes) layers[i].units /= factor;
  }
  return build_layers(layers, form);
}

}  // namespace

Graph small_digits_cnn() { return shrunken("digits_cnn", labelled({1, 6, 6}, 5)); }
Graph small_cnn() { return shrunken("cnn_32_64", labelled({1, 8, 8}, 5)); }
Graph small_resnet20() { return shrunken("resnet20", labelled({3, 8, 8}, 5)); }

std::vector<NamedGraph> small_sequence_models() {
  const SampleForm text{.shape = {5}, .vocabulary = 7, .label = {5}, .classes = 7};
  const SampleForm series{.shape = {6, 3}, .classes = 4, .lengths = true};
  const SampleForm fields{.shape = {4}, .vocabulary = 30, .classes = 2};
  const SampleForm pairs{.shape = {5}, .vocabulary = 6, .label = {4}, .classes = 7, .lengths = true, .target = 4};
  return {{"charlstm", shrunken("charlstm", text, 32)},
          {"chargru", shrunken("chargru", text, 32)},
          {"wordlstm", shrunken("wordlstm", text, 80)},
          {"sequence_classifier", shrunken("sequence_classifier", series, 16)},
          {"translation", shrunken("translation", pairs, 32)},
          {"transformer", shrunken("transformer", text, 32)},
          {"ranking", shrunken("ranking", fields, 16)}};
}

Graph small_dropout_net() {
  LayerConfig light = layer("dropout"), units = layer("dense"), head = layer("dense");
  light.rate = 0.25;
  units.units = 12, head.units = 5;
  return build_layers(
      {conv(4, "conv1"), layer("relu"), light, layer("flatten"), units, layer("relu"), layer("dropout"), head},
      labelled({2, 5, 5}, 5));
}

Graph small_batch_norm_net(const ModelConfig& norms, std::int64_t rows) {
  LayerConfig sum = layer("add");
  sum.inputs = {"norm2", "bent"};
  LayerConfig norm1 = layer("batch_norm"), norm2 = layer("batch_norm"), bent = layer("relu"), head = layer("dense");
  norm1.name = "norm1", norm2.name = "norm2", bent.name = "bent";
  head.units = 5;
  ModelConfig model = norms;
  model.layers = {conv(4, "conv1"), norm1, bent, conv(4, "conv2"), norm2, sum, layer("relu"), layer("flatten"), head};
  return build_model(model, labelled({2, rows, 5}, 5));
}

Graph small_tall_net() { return small_batch_norm_net({}, 7); }

}  // namespace echelon::verify
