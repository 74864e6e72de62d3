#include "tests/support/replicas.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "base/check.hpp"
#include "comm/group.hpp"
#include "exchange/replica_sum.hpp"
#include "exchange/strategy.hpp"
#include "model/build.hpp"
#include "model/zoo/zoo.hpp"
#include "tests/support/far_device.hpp"
#include "tests/support/picky_device.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/state_image.hpp"
#include "tests/support/trainee.hpp"
#include "train/micro_shards.hpp"

namespace echelon::test {
namespace {

constexpr std::uint64_t kSamples = 20;  // names the stream of samples
constexpr int kControlChannel = 0, kBroadcastChannel = 1, kSumsChannel = 2, kFirstChannel = 3;

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
  PlainBatch batch = hashed_batch(form_of(run.graph), run.one_batch ? 0 : step * global, global, kSamples);
  if (run.holes)
    for (std::size_t i = 3; i < batch.weights.size(); i += 7) batch.weights[i] = 0;
  return batch;
}

ExchangeConfig exchange_of(const ReplicaRun& run) {
  ExchangeConfig config;
  config.strategy = run.strategy;
  config.algorithm = run.algorithm;
  config.servers = run.servers;
  config.server_ranks = run.server_ranks;
  config.codec = run.codec;
  config.density = run.density;
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
  config.lazy = run.lazy;
  return config;
}

namespace {

// What a rank trains with.
struct Replica {
  Trainee trainee;
  ReplicaSum sum;
  Optimiser optimiser;
  std::unique_ptr<Strategy> strategy;

  // Every rank begins with weights of its own.
  Replica(const ReplicaRun& run, Engine& engine, Engine& workers, std::int64_t micro)
      : trainee(
            run.graph, micro,
            {.dtype = run.dtype, .seed = 1 + static_cast<std::uint64_t>(engine.rank()), .activations = run.activations},
            device_of(run, engine.rank())),
        sum(trainee.arenas().device(), workers, kSumsChannel),
        optimiser(optimiser_of(run), trainee.arenas(), run.scaling),
        strategy(make_strategy(exchange_of(run), {trainee.arenas(), optimiser, engine, kFirstChannel})) {
    if (workers.size() > 1) trainee.program().set_sum_over_replicas([this](const Tensor& sums) { sum(sums); });
    trainee.program().set_wait_parameters([this](ArenaRange range) { strategy->wait_parameters(range); });
  }

  static std::unique_ptr<Device> device_of(const ReplicaRun& run, int rank) {
    if (run.device == "far") return make_far_device(run.card);
    if (run.device == "picky") return make_picky_device(1 + static_cast<std::uint64_t>(rank));
    return open_device(run.device, {.index = rank});
  }

  void visit_state(StateVisitor& visitor) {
    trainee.arenas().visit_state(visitor);
    optimiser.visit_state(visitor);
    strategy->visit_state(visitor);
  }
};

std::unique_ptr<Replica> resumed(std::unique_ptr<Replica> replica, const ReplicaRun& run, Engine& engine,
                                 Engine& workers, std::int64_t micro) {
  StateImage image;
  replica->strategy->drain();
  replica->strategy->gather_state();
  replica->visit_state(image);
  replica = std::make_unique<Replica>(run, engine, workers, micro);
  image.load();
  replica->visit_state(image);
  return replica;
}

}  // namespace

ReplicaRun on_one_replica(ReplicaRun run, bool groups) {
  const std::int64_t all = std::accumulate(run.shares.begin(), run.shares.end(), std::int64_t{0});
  run.accumulation = groups ? run.accumulation * run.replicas() : 1;
  run.shares = {all};
  run.servers = run.server_ranks = 0;
  return run;
}

// A rank that is a server alone, beside the steps of the replicas.
ReplicaResult serve_replicas(Engine& engine, const ReplicaRun& run) {
  const auto servers = engine.split(1, engine.rank());
  auto replica = std::make_unique<Replica>(run, engine, *servers, 1);
  broadcast_weights(replica->trainee.arenas(), engine, kBroadcastChannel);
  ECHELON_CHECK(replica->strategy->role() == Role::server);
  for (std::int64_t step = 0; step < run.steps; ++step) {
    if (step == run.resume_at) replica = resumed(std::move(replica), run, engine, *servers, 1);
    replica->strategy->begin_step({.step = step, .learning_rate = run.learning_rate});
    (void)replica->strategy->end_step();
    if (step == 0) replica->strategy->drain();
  }
  replica->strategy->drain();
  ReplicaResult result;
  result.formula_bytes = replica->strategy->formula_bytes_per_step();
  result.sent_bytes = static_cast<double>(replica->strategy->wire().bytes_sent);
  return result;
}

ReplicaResult train_replica(std::unique_ptr<Transport> transport, const ReplicaRun& run) {
  Engine engine(std::move(transport));
  ECHELON_CHECK_EQ(engine.size(), run.ranks());
  if (engine.rank() >= run.replicas()) return serve_replicas(engine, run);
  const auto part = run.server_ranks > 0 ? engine.split(0, engine.rank()) : nullptr;
  Engine& workers = part ? *part : engine;
  const auto rank = static_cast<std::size_t>(engine.rank());
  const std::int64_t passes = run.micro_shards > 0 ? run.micro_shards / run.replicas() : run.accumulation;
  const std::int64_t share = run.shares[rank], micro = share / passes;
  ECHELON_CHECK_EQ(micro * passes, share, "accumulation divides the share");
  const std::int64_t first = std::accumulate(run.shares.begin(), run.shares.begin() + engine.rank(), std::int64_t{0});

  auto replica = std::make_unique<Replica>(run, engine, workers, micro);
  broadcast_weights(replica->trainee.arenas(), engine, kBroadcastChannel);

  Group group(workers, kControlChannel);
  std::optional<MicroShards> shards;
  if (run.micro_shards > 0) shards.emplace(replica->trainee.arenas(), passes);

  ReplicaResult result;
  for (std::int64_t step = 0; step < run.steps; ++step) {
    if (step == run.resume_at) replica = resumed(std::move(replica), run, engine, workers, micro);
    Trainee& trainee = replica->trainee;
    Optimiser& optimiser = replica->optimiser;
    Strategy* strategy = replica->strategy.get();
    const PlainBatch global = step_batch(run, step);
    PlainBatch local = part_of(global, first, share);
    if (run.reversed) local = reverse_of(local);
    strategy->begin_step({step, 0, run.learning_rate, global.weight(), local.weight()});
    trainee.set_step(step, static_cast<double>(global.n()));
    trainee.set_loss_scale(optimiser.loss_scale());
    trainee.program().reset_losses();
    if (shards) shards->begin_step();
    const auto ready = [&](ArenaRange range) {
      if (shards) shards->complete_gradients(range);
      strategy->gradient_ready(range);
    };
    for (std::int64_t a = 0; a < passes; ++a) {
      const bool last = a + 1 == passes;
      trainee.gradients(part_of(local, a * micro, micro), global.weight(), a == 0 || shards,
                        last ? ready : std::function<void(ArenaRange)>{});
      if (!shards) continue;
      if (!last) shards->keep_gradients();
      shards->add_losses(trainee.program().losses());
      trainee.program().reset_losses();
    }
    const StepOutcome outcome = strategy->end_step();
    ECHELON_CHECK_EQ(outcome.next_step, step + 1);
    result.skipped += outcome.skipped ? 1 : 0;
    result.gradient_norm = outcome.gradient_norm;
    if (shards) {
      result.step_losses.push_back(shards->losses().loss);
      group.sum(std::span(&result.step_losses.back(), 1));
    }
    if (step > 0) continue;
    strategy->drain();
    result.gradients = trainee.read_gradients();
  }
  replica->strategy->drain();
  result.sent_bytes = static_cast<double>(replica->strategy->wire().bytes_sent);
  result.formula_bytes = replica->strategy->formula_bytes_per_step();
  result.weights = replica->trainee.read_weights();
  result.loss = replica->trainee.program().losses().loss;
  result.correct = replica->trainee.program().losses().correct;
  result.checksums = {replica->trainee.arenas().checksum()};
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
  for (const ReplicaResult& result : results) {
    first.sent_bytes += result.sent_bytes;
    first.all_losses += result.loss;
    if (!result.checksums.empty()) first.checksums.push_back(result.checksums.front());
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

// A zoo model with its channels and units cut to a quarter.
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
Graph small_lenet() { return shrunken("lenet", labelled({1, 8, 8}, 5)); }
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

Graph small_batch_norm_net(const ModelConfig& norms) {
  LayerConfig sum = layer("add");
  sum.inputs = {"norm2", "bent"};
  LayerConfig norm1 = layer("batch_norm"), norm2 = layer("batch_norm"), bent = layer("relu"), head = layer("dense");
  norm1.name = "norm1", norm2.name = "norm2", bent.name = "bent";
  head.units = 5;
  ModelConfig model = norms;
  model.layers = {conv(4, "conv1"), norm1, bent, conv(4, "conv2"), norm2, sum, layer("relu"), layer("flatten"), head};
  return build_model(model, labelled({2, 5, 5}, 5));
}

}  // namespace echelon::test
