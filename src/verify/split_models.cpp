// SPDX-License-Identifier: Apache-2.0
#include "verify/split_models.hpp"

#include <cmath>
#include <numeric>

#include "base/check.hpp"
#include "base/tensor_region.hpp"
#include "comm/group.hpp"
#include "exchange/facets.hpp"
#include "model/build.hpp"
#include "verify/ranks.hpp"
#include "verify/worker.hpp"

namespace echelon::verify {
namespace {

constexpr int kGroupChannel = 0;

// The bytes of the parameters that every shard holds whole.
std::string shared_weights(const Arenas& arenas) {
  std::string all;
  for (const Parameter& p : arenas.parameters().all()) {
    if (!p.shared()) continue;
    std::string bytes(static_cast<std::size_t>(p.elems()) * size_of(arenas.dtype()), '\0');
    arenas.device().to_host(bytes.data(), arenas.weights_at(p.begin), bytes.size());
    all += bytes;
  }
  return all;
}

// Copies this part's values into the whole model's values, which are zero elsewhere.
void put(const ParameterSet& whole, const ParameterSet& part, const std::vector<double>& values,
         std::vector<double>& all) {
  all.resize(static_cast<std::size_t>(whole.elems()));
  for (const Parameter& p : part.all()) {
    const Parameter& w = whole[whole.find(p.name)];
    ECHELON_CHECK(p.global_shape.folded(p.folded) == w.shape, "'{}' is of {}, not {}", p.name, p.global_shape.text(),
                  w.shape.text());
    copy_into_whole({p.shape, p.global_shape, p.offset}, sizeof(double), values.data() + p.begin, all.data() + w.begin);
  }
}

}  // namespace

SplitResult train_split_rank(std::unique_ptr<Transport> transport, const SplitRun& split) {
  const ReplicaRun& run = split.replicas;
  Engine engine(std::move(transport));
  Config config = config_of(run);
  config.parallel = split.parallel;
  Standing standing(engine, config, batch_plan_of(run), run.graph);
  RankGroups& rank_groups = standing.rank_groups;
  const MeshCoord& coord = rank_groups.coord();
  Worker worker(standing, config, device_of(run, coord.shard), 1, run.scaling);
  const std::int64_t share = run.shares[static_cast<std::size_t>(coord.replica)];
  const std::int64_t first = std::accumulate(run.shares.begin(), run.shares.begin() + coord.replica, std::int64_t{0});
  const ParameterSet &whole = run.graph.parameters(), &own = standing.plan->part.graph.parameters();

  SplitResult result;
  StepResult last;
  for (std::int64_t step = 0; step < run.steps; ++step) {
    const PlainBatch global = step_batch(run, step);
    const PlainBatch local = part_of(global, first, share);
    last = worker.run({step, 0, run.learning_rate, global.weight(), local.weight()}, local);
    result.gradient_norm = last.outcome.gradient_norm;
    result.skipped += last.outcome.skipped ? 1 : 0;
    if (step > 0) continue;
    join_meeting(worker.strategy());
    worker.strategy().drain();
    put(whole, own, worker.gradients(), result.gradients);
  }
  worker.activation_exchange().finish();
  join_meeting(worker.strategy());
  worker.strategy().drain();
  put(whole, own, worker.weights(), result.weights);
  if (rank_groups.has_loss(standing.plan->part.has_loss_by_rows()))
    result.loss = last.losses.loss, result.correct = last.losses.correct;
  result.activation_bytes = {worker.runner().activation_bytes()};
  result.halo_bytes = static_cast<double>(worker.activation_exchange().halo_bytes());
  result.sent_bytes = static_cast<double>(worker.activation_exchange().sent().bytes_sent);
  const std::vector<std::string> shared =
      Group(rank_groups.shards(), kGroupChannel).gather(shared_weights(worker.arenas()));
  for (const std::string& bytes : shared) ECHELON_CHECK(bytes == shared.front(), "what shards hold whole differs");
  Group replicas(rank_groups.replicas(), kGroupChannel);
  replicas.barrier();
  const std::vector<std::string> sums = replicas.gather(std::to_string(worker.arenas().checksum()));
  for (const std::string& sum : sums) ECHELON_CHECK_EQ(sum, sums.front(), "replicas of stage {}", coord.stage);
  return result;
}

namespace {

// Values that several ranks hold must be equal.
void merge(const std::vector<double>& part, std::vector<double>& all) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] == 0 || !std::isfinite(part[i])) continue;
    ECHELON_CHECK(all[i] == 0 || std::fabs(all[i] - part[i]) <= 1e-9 * std::fabs(part[i]) + 1e-12,
                  "value {}: {} and {}", i, all[i], part[i]);
    all[i] = part[i];
  }
}

LayerConfig layer(const std::string& type, std::int64_t units, std::vector<std::string> inputs = {}) {
  LayerConfig config;
  config.type = type;
  config.units = units;
  config.inputs = std::move(inputs);
  return config;
}

LayerConfig named(const std::string& name, LayerConfig config) {
  config.name = name;
  return config;
}

LayerConfig dropout(double rate) {
  LayerConfig config = layer("dropout", 0);
  config.rate = rate;
  return config;
}

LayerConfig reversed(LayerConfig config) {
  config.reverse = true;
  return config;
}

// Removes the bias of keys: it would shift all scores equally, and its gradient would consist of rounding errors.
LayerConfig without_bias(LayerConfig config) {
  config.bias = false;
  return config;
}

LayerConfig attention(std::vector<std::string> inputs) {
  LayerConfig config = layer("attention", 0, std::move(inputs));
  config.heads = 1;
  return config;
}

}  // namespace

std::vector<NamedGraph> small_stacks() {
  const SampleForm text{.shape = {7}, .vocabulary = 5, .label = {7}, .classes = 5};
  const SampleForm series{.shape = {7, 3}, .classes = 4, .lengths = true};
  const SampleForm pairs{.shape = {7}, .vocabulary = 6, .label = {5}, .classes = 5, .lengths = true, .target = 5};
  LayerConfig sparse = layer("embedding", 3);
  sparse.sparse = true;
  return {
      {"four", build_layers({layer("embedding", 3), layer("lstm", 4), layer("lstm", 4), layer("lstm", 4),
                             layer("lstm", 4), layer("dense", 5)},
                            text)},
      {"dropout", build_layers({sparse, dropout(0.25), layer("gru", 4), dropout(0.5), layer("layer_norm", 0),
                                layer("rnn", 4), dropout(0.25), layer("dense", 5)},
                               text)},
      {"residual", build_layers({layer("embedding", 4), named("a", layer("lstm", 4)), named("b", layer("lstm", 4)),
                                 layer("add", 0, {"a", "b"}), layer("tanh", 0), layer("lstm", 3), layer("dense", 5)},
                                text)},
      {"both_ways",
       build_layers(
           {named("on", layer("lstm", 3, {"samples"})), named("back", reversed(layer("lstm", 3, {"samples"}))),
            layer("concat", 0, {"on", "back"}), named("top", layer("gru", 4)), named("last", layer("sequence_pool", 0)),
            layer("concat", 0, {"last", "top.1"}), layer("dense", 4)},
           series)},
      {"translation",
       build_layers({layer("embedding", 3, {"samples"}), named("e1", layer("lstm", 4)), named("e2", layer("lstm", 4)),
                     named("target_embedding", layer("embedding", 3, {"target"})),
                     named("d1", layer("lstm", 4, {"target_embedding", "e1.1", "e1.2"})),
                     named("d2", layer("lstm", 4, {"d1", "e2.1", "e2.2"})), without_bias(layer("dense", 4, {"e1"})),
                     layer("dense", 4, {"e2"}), attention({"d2", "dense1", "dense2"}),
                     layer("concat", 0, {"d2", "attention1"}), named("top", layer("lstm", 3)), layer("dense", 5)},
                    pairs)}};
}

Graph small_carrying_stack() {
  const SampleForm text{.shape = {6}, .vocabulary = 5, .label = {6}, .classes = 5, .stream = true};
  LayerConfig lstm = layer("lstm", 4), gru = layer("gru", 3);
  lstm.carry = gru.carry = true;
  return build_layers({layer("embedding", 3), lstm, gru, layer("dense", 5)}, text);
}

SplitResult train_split(const SplitRun& run) {
  const int ranks = run.replicas.replicas() * run.group_size();
  std::vector<SplitResult> results(static_cast<std::size_t>(ranks));
  std::vector<int> hosts;  // one host for all ranks, or one for each
  for (int rank = 0; rank < ranks && run.parallel.allow_across_nodes; ++rank) hosts.push_back(rank);
  run_ranks(
      ranks,
      [&](std::unique_ptr<Transport> transport) {
        const auto rank = static_cast<std::size_t>(transport->rank());
        results[rank] = train_split_rank(std::move(transport), run);
      },
      60, hosts);
  SplitResult all;
  all.gradients.resize(static_cast<std::size_t>(run.replicas.graph.parameters().elems()));
  all.weights.resize(all.gradients.size());
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    all.loss += results[rank].loss;
    all.correct += results[rank].correct;
    all.halo_bytes += results[rank].halo_bytes;
    all.sent_bytes += results[rank].sent_bytes;
    all.activation_bytes.push_back(results[rank].activation_bytes.front());
    all.gradient_norm = results[rank].gradient_norm, all.skipped = results[rank].skipped;
    ECHELON_CHECK_EQ(all.gradient_norm, results[0].gradient_norm, "the norm on rank {}", rank);
    ECHELON_CHECK_EQ(all.skipped, results[0].skipped, "steps skipped by rank {}", rank);
    if (rank >= static_cast<std::size_t>(run.group_size())) continue;  // only ranks of the first replica
    merge(results[rank].weights, all.weights);
    merge(results[rank].gradients, all.gradients);
  }
  return all;
}

}  // namespace echelon::verify
