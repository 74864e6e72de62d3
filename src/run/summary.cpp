// SPDX-License-Identifier: Apache-2.0
#include "run/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/allocations.hpp"
#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/cpu_time.hpp"
#include "base/peak_memory.hpp"
#include "config/traits/strategies.hpp"
#include "device/peak_rate.hpp"
#include "exchange/facets.hpp"
#include "job/shaped_network.hpp"
#include "model/build.hpp"
#include "report/figures_json.hpp"
#include "run/channels.hpp"
#include "run/learning.hpp"
#include "run/model_checksum.hpp"
#include "run/rate.hpp"
#include "run/staleness.hpp"
#include "train/codec_record.hpp"
#include "train/trained_batches.hpp"

namespace echelon::inline run {

using nlohmann::ordered_json;

namespace {

constexpr double kMiB = 1 << 20;

double known(double value) { return value >= 0 ? value : kUnknown; }

std::vector<std::int64_t> batch_by_rank(const RunPlan& plan) {
  if (plan.replicas == plan.shards.replicas()) return plan.batch.per_replica;
  return {plan.batch.global};
}

// Ranks that took clearly longer than the median rank in a phase without communication: "rank 3 on n2 is 1.8x slower in
// backward". Waits do not count: a slow rank makes the others wait. Under a split ranks of one part are compared.
std::vector<std::string> slow_ranks(const Ready& ready, Group& group) {
  constexpr double kSlower = 1.25, kLeastShare = 0.02;  // of the median rank's time; of the step
  if (!ready.placed.groups.trains()) return {};
  const StepTimes& t = ready.statistics.times();
  const std::vector<std::pair<const char*, double>> own = {{"waiting for data", t.data_wait_s},
                                                           {"forward", t.forward_s},
                                                           {"backward", t.backward_s},
                                                           {"update", t.optimiser_s}};
  const double steps =
      static_cast<double>(std::max<std::int64_t>(1, ready.statistics.steps_in_sums()));  // of this rank
  const double total_s = group.gather(t.total_s / steps)[0];
  std::vector<std::string> message;
  for (const auto& [name, seconds] : own) {
    const std::vector<double> all = group.gather(seconds / steps);
    const Mesh& mesh = ready.placed.groups.mesh();
    for (std::size_t r = 0; r < all.size(); ++r) {
      const int part = mesh.index_in_group(mesh.coord(static_cast<int>(r)));
      std::vector<double> of_part;
      for (int replica = 0; replica < mesh.replicas(); ++replica)
        of_part.push_back(all[static_cast<std::size_t>(mesh.rank_of(replica, part))]);
      const double median_s = quartiles_of(of_part).median;
      if (of_part.size() > 1 && all[r] > kSlower * median_s && all[r] - median_s > kLeastShare * total_s)
        message.push_back(fmt::format("rank {} on {} is {:.1f}x slower in {}", r, ready.opened.provenance.hosts[r],
                                      all[r] / median_s, name));
    }
  }
  return message;
}

// Names the link that the ranks wait for, if steps wait for the exchange (meetings of averaged weights are among the
// hooks); "" for none. Collective; on rank 0.
std::string slow_link(const Ready& ready, const LinkWaits& waits) {
  constexpr double kLeastShare = 0.2;  // of the steps of the rank that waits longest
  const StepTimes& t = ready.statistics.times();
  const double share = ready.context.group.max((t.exchange_s + t.split_s + t.hooks_s) / std::max(1e-9, t.total_s));
  if (waits.hosts.empty() || share < kLeastShare) return {};
  const double steps = static_cast<double>(std::max<std::int64_t>(1, ready.statistics.steps_in_sums()));
  return limiting_link(waits, t.total_s / steps);
}

// The checksum of the first replica's whole model, however it is cut.
std::string checksum_of_replica(const Ready& ready, Group& group) {
  const Mesh& mesh = ready.placed.groups.mesh();
  if (mesh.parts() == 1) return hex64(model_checksum(ready.built.arenas, true));
  const bool first = mesh.coord(ready.context.slot.rank).shard == 0;
  const std::vector<std::string> all = group.gather(hex64(model_checksum(ready.built.arenas, first)));
  std::uint64_t sum = 0;
  for (int part = 0; part < mesh.parts(); ++part)
    sum += std::stoull(all[static_cast<std::size_t>(mesh.holders(part).front())], nullptr, 16);
  return hex64(sum);
}

// Fills in the figures that all ranks have in common.
void take_setting(const Ready& ready, RunFigures& run) {
  const Config& config = ready.agreed.config;
  const Mesh& mesh = ready.placed.groups.mesh();
  run.name = config.name;
  run.config_hash = ready.opened.provenance.config_hash;
  run.servers = ready.placed.groups.roles().servers;
  run.ranks = ready.placed.groups.roles().workers;
  run.mesh = {mesh.replicas(), mesh.pipeline(), mesh.tensor(), mesh.space()};
  run.hosts = ready.context.slot.hosts;
  run.device = std::string(ready.opened.device->name());
  run.device_text = ready.opened.device->describe();
  run.paced = !ready.opened.device->computes();
  run.shaped = config.network.rate.empty() ? "" : shape_of(config.network).text();
  run.dtype = std::string(name_of(config.device.dtype));
  run.threads = ready.opened.threads;
  run.model = config.model.zoo.empty() ? config.name : config.model.zoo;
  run.parameters = ready.agreed.plan.graph.parameters().weight_elems();
  const ModelCosts costs = model_costs(ready.agreed.plan.graph, config.device.dtype);
  run.forward_flops = costs.forward_flops;
  run.backward_flops = costs.backward_flops;
  run.strategy = config.exchange.strategy;
  run.algorithm = ready.opened.exchange.algorithm;
  run.codec = config.exchange.codec;
  run.global_batch = ready.agreed.plan.batch.global;
  run.batch_per_replica = batch_by_rank(ready.agreed.plan);
  run.accumulation = ready.agreed.plan.batch.accumulation;
  run.scaling = config.batch.scale_with_replicas ? "weak" : "strong";
}

// Returns the number of steps by which sums over this rank's steps are divided: its own; on a rank that only serves,
// that of the worker that has done most; if batches are drawn, the mean over the workers. Collective.
double steps_of(const Ready& ready, Group& world) {
  const double own = static_cast<double>(ready.statistics.steps_of_run());
  double most = 0, sum = 0, workers = 0;
  for (const double steps : world.gather(ready.stepper->trains() ? own : -1)) {
    if (steps < 0) continue;
    most = std::max(most, steps), sum += steps, ++workers;
  }
  if (ready.agreed.config.data.balance == Balance::queue) return std::max(1.0, sum / workers);
  return std::max(1.0, ready.stepper->trains() ? own : most);
}

// Fills in the figures that this rank measured.
void take_measured(const Ready& ready, double steps, const CardRates& card, RunFigures& own) {
  const StatisticsHook& stats = ready.statistics;
  const WireCounters wire = ready.built.strategy->wire();
  // Each part of a split model is exchanged among the ranks that hold it: the first of them counts it.
  const bool counts = ready.placed.groups.exchange().rank() == 0;
  own.time_split_s = stats.times();
  own.wire_bytes_per_step = static_cast<double>(wire.bytes_sent) / steps;
  own.down_bytes_per_step = static_cast<double>(wire.answered_bytes) / steps;
  // Meetings, whose share depends on the steps of each rank, are in the formula.
  const bool has_formula = ready.agreed.config.data.balance == Balance::fixed;
  own.formula_bytes_per_step = !has_formula ? kUnknown
                               : counts     ? known(ready.built.strategy->formula_bytes_per_step())
                                            : 0;
  own.warm_wire_bytes_per_step = known(stats.warm_wire_bytes());
  own.messages_per_step = static_cast<double>(wire.messages_sent) / steps;
  own.library_bytes_per_step = static_cast<double>(wire.library_bytes) / steps;
  own.split_bytes_per_step = static_cast<double>(ready.opened.activations->sent().bytes_sent) / steps;
  own.halo_bytes_per_step = static_cast<double>(ready.opened.activations->halo_bytes()) / steps;
  if (counts_allocations()) {
    own.allocations_per_step = stats.allocations_per_step();
    own.allocated_bytes_per_step = stats.allocated_bytes_per_step();
  }
  own.exchange_exposed_s = stats.exposed_s();
  own.exchange_hidden_s = std::max(0.0, stats.busy_s() - stats.exposed_s());
  own.bytes_read = static_cast<double>(ready.stepper->bytes_read());
  own.bytes_used = static_cast<double>(ready.stepper->bytes_used());
  own.card_peak = {card.peak};
  own.card_mean = {card.mean};
  own.cpu_s = cpu_seconds();
  own.peak_rss_mb = {peak_memory_mb()};
  own.device_peak_mb = {static_cast<double>(ready.opened.device->peak_bytes()) / kMiB};
  const bool stages = ready.placed.groups.mesh().pipeline() > 1;
  own.activations_spared_mb = {stages ? static_cast<double>(ready.stepper->spared_bytes()) / kMiB : 0};
  own.start_to_first_step_s = stats.first_step_s();
  if (stats.steps_before_sums() > 0) {
    own.warmup_steps = static_cast<double>(stats.steps_before_sums());
    own.warmup_s = stats.warmup_s();
  }
  own.step_s = stats.step_s();
  own.timed_steps = stats.measured_steps();
  const double steps_in_sums = std::max(1.0, steps - static_cast<double>(stats.steps_before_sums()));
  own.arrival_skew_s = stats.skew_s() / steps_in_sums;
  if (ready.built.strategy->progress().meets == Progress::Meets::every_step && ready.opened.provenance.ranks > 1)
    own.skew_wait_s = stats.skew_wait_s() / steps_in_sums;
  own.coded = figures_of(stats.codec());
  own.codec_s = own.coded ? stats.codec_s() : kUnknown;
  if (ready.agreed.config.run.measure_peak)
    own.peak_flops = peak_flops(*ready.opened.device, ready.agreed.config.device.dtype, ready.built.arenas.dtype());
  if (const auto* holds = facet_of<HoldsUpdates>(*ready.built.strategy)) own.updates_held = holds->updates_held();
  own.gradients_dropped = {static_cast<double>(stats.gradients_dropped())};
  own.samples_dropped = {static_cast<double>(stats.samples_dropped())};
  if (ready.agreed.config.device.pace_ms != 0) {
    const PaceRecord pace = ready.stepper->pace().value_or(PaceRecord{});
    own.pace_s = {pace.pace_s / std::max(1.0, static_cast<double>(stats.steps()))};
    own.pace_over_steps = {pace.over_steps};
    own.pace_worst = {pace.worst};
  }
}

// Counts how often samples of the data set were trained. O(samples): left out for the largest sets.
void take_coverage(const Ready& ready, Group& peers, RunFigures& run) {
  constexpr std::int64_t kMostSamples = 50'000'000;
  if (!ready.placed.groups.trains() || ready.agreed.plan.shards.ids_end() > kMostSamples) return;
  const TrainedBatches& trained = ready.statistics.batches();
  const std::vector<std::string> by_rank = peers.gather(trained.text());
  if (peers.rank() != 0) return;
  std::vector<std::string> by_replica;
  for (int replica = 0; replica < ready.agreed.plan.replicas; ++replica)
    by_replica.push_back(by_rank[static_cast<std::size_t>(ready.placed.groups.mesh().rank_of(replica, 0))]);
  const SamplePlan::Coverage coverage =
      trained_coverage(ready.agreed.plan, ready.stepper->draws(), trained.epoch(), by_replica);
  run.samples_never = static_cast<double>(coverage.never);
  run.samples_once = static_cast<double>(coverage.once);
  run.samples_repeated = static_cast<double>(coverage.more);
}

void take_learned(const Ready& ready, RunFigures& run) {
  const EpochRecord& epoch = ready.statistics.newest_epoch();
  run.epochs = epoch.epoch;
  run.train_loss = known(epoch.epoch > 0 ? epoch.train_loss : ready.statistics.newest_loss());
  run.drift = known(ready.statistics.drift());
  run.train_eval_loss = known(epoch.train_eval_loss);
  run.train_accuracy = known(epoch.train_accuracy);
  run.test_loss = known(epoch.test_loss);
  run.test_accuracy = known(epoch.test_accuracy);
  if (epoch.classes.any())
    take_class_figures(chosen_figures(epoch.classes.figures(), ready.agreed.config.evaluate.metrics), run);
  take_value_figures(chosen_figures(epoch.values, ready.agreed.config.evaluate.metrics), run);
  if (!ready.agreed.plan.per_token()) return;
  run.loss_unit = "nats per token";
  run.test_perplexity = std::exp(run.test_loss);
}

}  // namespace

RunFigures collect_summary(const Ready& ready, const CardRates& card, const LinkWaits& waits,
                           const std::vector<StalenessTally>& staleness, const std::string& state) {
  Group& world = ready.context.group;
  Group peers(ready.placed.groups.peers(), kControlChannel);
  RunFigures run;
  take_setting(ready, run);
  take_measured(ready, steps_of(ready, world), card, run);
  take_learned(ready, run);
  take_coverage(ready, peers, run);
  run.state = state;
  run.steps = ready.built.state.step;
  combine_ranks(run, world.gather(values_of_rank(run)), run.ranks);
  take_staleness(staleness, run);
  if (ready.placed.groups.trains()) take_rate(ready, peers, staleness, run);
  if (!strategy_traits(ready.agreed.config.exchange.strategy).skips_steps) {
    run.gradients_dropped.clear();
    run.samples_dropped.clear();
  }
  if (ready.placed.groups.trains()) take_learning(ready, peers, run);
  run.slow_ranks = slow_ranks(ready, peers);
  if (const std::string text = slow_link(ready, waits); !text.empty()) run.findings.push_back(text);
  run.weights_checksum = checksum_of_replica(ready, peers);
  return run;
}

void write_summary(const RunFigures& run, const Ready& ready) {
  ordered_json json = {{"format", "echelon-summary"}, {"version", 2}};
  json.update(to_json(run));
  json["provenance"] = to_json(ready.opened.provenance);
  if (const ClassCounts& classes = ready.statistics.newest_epoch().classes;
      classes.any() && !ready.agreed.config.evaluate.metrics.empty())
    write_file_whole(ready.agreed.start.folder.attempt + "/classes.csv",
                     classes.csv(ready.agreed.plan.train.class_names));
  write_file_whole(ready.agreed.start.folder.attempt + "/summary.json",
                   json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace echelon::inline run
