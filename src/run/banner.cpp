// SPDX-License-Identifier: Apache-2.0
#include "run/banner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <sstream>

#include "base/log.hpp"
#include "base/text.hpp"
#include "config/parse.hpp"
#include "data/class_mix.hpp"
#include "data/describe.hpp"
#include "job/shaped_network.hpp"
#include "model/build.hpp"
#include "parallel/pipeline.hpp"
#include "parallel/stages.hpp"
#include "parallel/time_chunk_pipeline.hpp"
#include "run/warnings.hpp"

namespace echelon::inline run {
namespace {

std::string batch_line(const Config& config, const BatchPlan& batch, const Mesh& mesh, int replicas) {
  if (config.train.reproducible)
    return fmt::format("batch     {} a step = {} micro-shards of {}, {} on each of {}; reproducible on {}",
                       batch.global, config.train.micro_shards, batch.micro.front(), batch.accumulation,
                       counted(replicas, "replica"), same_bits_text(config, mesh));
  const bool even =
      std::adjacent_find(batch.micro.begin(), batch.micro.end(), std::not_equal_to<>()) == batch.micro.end();
  const std::string micro =
      even ? std::to_string(batch.micro.front()) : fmt::format("({})", fmt::join(batch.micro, ", "));
  return fmt::format("batch     {} a step = {} micro x {} accumulation x {}; {} scaling", batch.global, micro,
                     batch.accumulation, counted(replicas, "replica"),
                     config.batch.scale_with_replicas ? "weak" : "strong");
}

// "3", "2 workers + 1 server"
std::string ranks_text(int ranks, int workers) {
  if (ranks == workers) return std::to_string(ranks);
  return fmt::format("{} + {}", counted(workers, "worker"), counted(ranks - workers, "server"));
}

// Says how samples are distributed to steps.
std::string order_text(const RunPlan& plan) {
  if (plan.shards.stream()) return "streams";
  if (plan.shards.buckets().empty()) return fmt::format("sharding by {}", name_of(plan.shards.sharding()));
  return fmt::format("length buckets of up to {}", fmt::join(plan.shards.buckets(), ", "));
}

std::string data_line(const RunPlan& plan) {
  const std::string test = plan.test ? counted(plan.test->samples(), "test sample") : "no test data";
  const auto files = static_cast<std::int64_t>(plan.train.shards.size());
  const std::string what =
      plan.train.kind == DataKind::samples ? counted(plan.train.samples(), "sample") : content_text(plan.train);
  return fmt::format("data      {} in {}, {}; {}; {} an epoch, {} in all", what, counted(files, "file"), test,
                     order_text(plan), counted(plan.steps_per_epoch, "step"), count_text(plan.total_steps));
}

// "warm-up   1 of 3 replicas, for 20 steps of each epoch before the others join"
std::string warmup_line(const ExchangeConfig& config, const RunPlan& plan) {
  std::int64_t steps = 0, epoch = 0;
  while (plan.shards.warmup_steps(epoch) > 0 && (!config.warmup_each_epoch || epoch == 0))
    steps += plan.shards.warmup_steps(epoch++);
  if (steps == 0) return fmt::format("warm-up   none: there are no more than {} replicas", config.warmup_replicas);
  return fmt::format("warm-up   {} of {} replicas, for {}{} before the others join", config.warmup_replicas,
                     plan.replicas, counted(steps, "step"), config.warmup_each_epoch ? " of each epoch" : "");
}

std::string model_line(const Config& config, const RunPlan& plan) {
  const ModelCosts costs = model_costs(plan.graph, config.device.dtype);
  return fmt::format("model     {}: {} parameters, {}FLOP forward and {}FLOP backward a sample, {}",
                     config.model.zoo.empty() ? "of the config" : config.model.zoo, count_text(costs.parameters),
                     short_count(costs.forward_flops), short_count(costs.backward_flops),
                     echelon::name_of(config.device.dtype));
}

// "stages    conv1 to pool1 (62 % of FLOPs), conv2 to loss (38 %); 1f1b over 4 micro-batches, bubble at least 20.0 %"
std::string stages_line(const Config& config, const RunPlan& plan, const Mesh& mesh) {
  const std::vector<double> flops = node_flops(plan.graph, config.device.dtype);
  const double all = std::accumulate(flops.begin(), flops.end(), 0.0);
  std::string text;
  for (int stage = 0; stage < mesh.pipeline(); ++stage) {
    double own = 0;
    for (std::size_t node = 0; node < flops.size(); ++node)
      if (plan.part.stages[node] == stage) own += flops[node];
    text += fmt::format("{}{} ({:.0f} %{})", stage > 0 ? "; " : "", stage_text(plan.graph, plan.part.stages, stage),
                        all > 0 ? 100 * own / all : 0, stage == 0 ? " of FLOPs" : "");
  }
  const int micro_batches = static_cast<int>(plan.batch.accumulation);
  const int chunks = static_cast<int>(config.parallel.time_chunks);
  return fmt::format("stages    {}; {} over {}{}, bubble at least {:.1f} %", text, config.parallel.schedule,
                     counted(micro_batches, "micro-batch"), chunks > 1 ? fmt::format(" of {} chunks", chunks) : "",
                     100 * bubble_share(mesh.pipeline(), micro_batches, chunks));
}

// "chunks    64 time steps in 8 chunks; attention1 processes all steps at once"
std::string chunks_line(const RunPlan& plan, std::int64_t chunks) {
  const std::vector<std::string> uncut = uncut_layers(plan.graph);
  const std::string whole =
      fmt::format("; {} {} all steps at once", fmt::join(uncut, ", "), uncut.size() == 1 ? "processes" : "process");
  return fmt::format("chunks    {} time steps in {} chunks{}", plan.graph.values().front().shape[0], chunks,
                     uncut.empty() ? "" : whole);
}

// None if the classes are mixed.
std::optional<std::string> class_line(const RunPlan& plan) {
  if (!plan.train.label_sample) return {};
  const ClassMix mix = class_mix(*plan.train.label_sample, &plan.shards);
  if (mix.chunks == 0 && mix.files == 0 && mix.replicas == 0) return {};
  return "classes   " + mix_text(mix);
}

std::vector<std::string> banner_lines(const Phases& p) {
  const Config& config = p.agreed.config;
  const RunPlan& plan = p.agreed.plan;
  const Decision& start = p.agreed.start;
  const HostSlot& slot = p.context.slot;
  const Mesh& mesh = p.placed.groups.mesh();
  const Device& device = *p.opened.device;
  const Provenance& made = p.opened.provenance;
  std::vector<std::string> lines = {
      fmt::format("echelon {} ({}), {}", made.version, made.git_hash, made.mpi),
      fmt::format("run       {} (config {}), seed {}", config.name, made.config_hash, made.seed),
      fmt::format("ranks     {} on {}; {}", ranks_text(slot.ranks, mesh.ranks()), counted(slot.hosts, "host"),
                  by_rank_text(made.hosts)),
      fmt::format("mesh      {}", mesh.text()),
      model_line(config, plan),
      batch_line(config, plan.batch, mesh, plan.shards.replicas()),
      data_line(plan),
      fmt::format("exchange  {}", p.built.strategy->describe()),
      fmt::format("device    {} ({} a rank): {}", device.name(), counted(p.opened.threads, "thread"),
                  by_rank_text(made.devices)),
      fmt::format("results   {}", start.folder.attempt),
  };
  if (!plan.train.stored_as.empty())
    lines.push_back(fmt::format("note      training data are stored as {} and converted to {} when they are read",
                                plan.train.stored_as, echelon::name_of(plan.train.stored)));
  if (const auto line = class_line(plan)) lines.push_back(*line);
  for (const std::string& note : p.agreed.notes) lines.push_back("note      " + note);
  if (config.exchange.warmup_replicas > 0) lines.push_back(warmup_line(config.exchange, plan));
  if (mesh.pipeline() > 1) lines.push_back(stages_line(config, plan, mesh));
  if (mesh.tensor() > 1)
    lines.push_back(
        fmt::format("tensor    {}{}", plan.part.shards, mesh.pipeline() > 1 ? " (of the first stage)" : ""));
  if (config.parallel.time_chunks > 1) lines.push_back(chunks_line(plan, config.parallel.time_chunks));
  if (plan.replicas != plan.shards.replicas())
    lines.push_back(
        fmt::format("samples   one replica processes those of {} (data.as_replicas)", plan.shards.replicas()));
  if (!device.computes())
    lines.emplace_back("PACED     ops sleep for tabulated times: a timing study, computed values are meaningless");
  if (!config.network.rate.empty())
    lines.push_back(
        fmt::format("SHAPED    messages between hosts are slowed down to {} (network.rate): times are those "
                    "of that network",
                    shape_of(config.network).text()));
  if (config.device.pace_ms != 0)
    lines.push_back(fmt::format("pace      ops compute, then sleep: forward and backward of a step take {}{}",
                                config.device.pace_ms > 0 ? seconds_text(1e-3 * config.device.pace_ms)
                                                          : std::string("the times of their ops by table and rates"),
                                config.device.pace_factors.empty() ? "" : ", times device.pace_factors by rank"));
  if (const std::string frozen = frozen_text(plan.graph.parameters()); !frozen.empty())
    lines.push_back("frozen    " + frozen);
  if (!start.told.empty())
    lines.push_back((!start.weights.empty() ? "weights   "
                     : start.first_step()   ? "hint      "
                                            : "resuming  ") +
                    start.told);
  for (const std::string& text : warnings_of_config(config, slot.ranks, slot.hosts))
    lines.push_back("warning   " + text);
  for (const std::string& text : warnings_of_plan(config, plan)) lines.push_back("warning   " + text);
  return lines;
}

}  // namespace

std::string by_rank_text(const std::vector<std::string>& entries) {
  std::string text;
  for (std::size_t first = 0; first < entries.size();) {
    std::size_t last = first;
    while (last + 1 < entries.size() && entries[last + 1] == entries[first]) ++last;
    if (!text.empty()) text += "; ";
    if (entries.size() > 1) text += first == last ? fmt::format("{}: ", first) : fmt::format("{}-{}: ", first, last);
    text += entries[first];
    first = last + 1;
  }
  return text;
}

std::string same_bits_text(const Config& config, const Mesh& mesh) {
  const std::string replicas = fmt::format("1, 2, 4, .. {}", counted(config.train.micro_shards, "replica"));
  if (mesh.parts() == 1) return replicas;
  return fmt::format("{} of this mesh (other splits may round differently)", replicas);
}

void log_banner(const Phases& p) {
  if (!p.context.is_first()) return;
  const Agreed& agreed = p.agreed;
  for (const std::string& line : banner_lines(p)) log_info("{}", line);
  std::istringstream lines(agreed.split.report);
  for (std::string line; std::getline(lines, line);) log_info("{}", line);
  p.opened.layouts.log_choice();
  p.opened.tuning.log_choice();
  if (agreed.replay.is_on()) log_info("replay    {}", agreed.replay.told);
  warn_without_checksums(agreed.plan.train, agreed.config.data.train);
  if (agreed.plan.test) warn_without_checksums(*agreed.plan.test, agreed.config.data.test);
}

}  // namespace echelon::inline run
