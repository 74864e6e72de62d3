// SPDX-License-Identifier: Apache-2.0
// echelon check: works out what a run would do, without MPI and without starting it. Refuses what train would refuse.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/checksum.hpp"
#include "base/cores.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/check_launch.hpp"
#include "cli/memory_text.hpp"
#include "cli/mesh_text.hpp"
#include "cli/options.hpp"
#include "cli/sparse_text.hpp"
#include "config/batch_plan.hpp"
#include "config/combinations.hpp"
#include "config/parse.hpp"
#include "data/class_mix.hpp"
#include "data/describe.hpp"
#include "data/loader.hpp"
#include "device/device.hpp"
#include "exchange/entry.hpp"
#include "model/build.hpp"
#include "parallel/choose.hpp"
#include "parallel/memory_limit.hpp"
#include "run/banner.hpp"
#include "run/replay.hpp"
#include "run/resolve_split.hpp"
#include "run/resume.hpp"
#include "run/warnings.hpp"
#include "train/run_plan.hpp"

namespace echelon::cli {
namespace {

void line(std::string_view what, const std::string& text) { fmt::print("{:<11} {}\n", what, text); }

std::string list_text(const std::vector<std::int64_t>& values, std::string_view between = "+") {
  if (std::all_of(values.begin(), values.end(), [&](auto v) { return v == values.front(); }))
    return fmt::format("{}", values.front());
  std::string out;
  for (const std::int64_t value : values) out += fmt::format("{}{}", out.empty() ? "" : between, value);
  return out;
}

std::int64_t largest(const std::vector<std::int64_t>& values) {
  return *std::max_element(values.begin(), values.end());
}

bool is_pattern(const std::string& location) { return location.find_first_of("*?") != std::string::npos; }

std::string data_text(const std::string& location, const Dataset& data) {
  return fmt::format("{}: {} in {}", location, content_text(data),
                     counted(static_cast<std::int64_t>(data.shards.size()), "file"));
}

// Resolves parallel.split = "auto" by counted FLOPs and assumed links; the run measures both.
void choose_split_here(Check& check) {
  Config& config = check.config;
  if (config.parallel.split != "auto") return;
  constexpr Link kInside{.latency_s = 5e-6, .bytes_per_s = 5e9}, kBetween{.latency_s = 30e-6, .bytes_per_s = 1.25e9};
  const RunInputs& inputs = *check.inputs;
  SplitCosts costs{.node_s = node_flops(inputs.graph, config.device.dtype), .network = {kInside, kBetween}};
  for (double& cost : costs.node_s) cost /= 1e9 * config.device.paced_gflops;
  const SplitChoice choice = choose_split(config, inputs.graph, {check.hosts_of_ranks(), check.host_names()},
                                          inputs.samples(config.data), costs, exchange_arenas);
  config.parallel = choice.parallel;
  fmt::print(
      "{}estimated with {} GFLOP/s a rank, 40 Gbit/s inside hosts and 10 between them; the run measures and may choose "
      "another split\n\n",
      choice.report, config.device.paced_gflops);
}

// Returns whether the data are here. Data that are not on this machine give a warning; damaged data are an error.
bool is_here(Check& check, const std::string& location, std::string_view key) {
  std::error_code error;
  if (is_pattern(location) || std::filesystem::exists(location, error) || error) return true;
  check.warn(fmt::format("{} = \"{}\" is not on this machine{}", key, location,
                         key == "data.train" ? ": shards, model and memory are left out" : ""));
  return false;
}

void open_data(Check& check) {
  const DataConfig& data = check.config.data;
  const bool train = is_here(check, data.train, "data.train");
  const bool test = !data.test.empty() && is_here(check, data.test, "data.test");
  if (train) {
    Config here = check.config;
    if (!test) here.data.test.clear();
    check.inputs = open_inputs(here);
  }
  line("data", train ? data_text(data.train, check.inputs->train) : data.train + ": not found");
  if (!data.test.empty())
    line("test data", !test   ? data.test + ": not found"
                      : train ? data_text(data.test, *check.inputs->test)
                              : data_text(data.test, open_dataset(data.test, data.of_test())));
}

// Makes the plan that each rank of the launch makes; without data only the batch.
BatchPlan make_plan(Check& check) {
  const Config& config = check.config;
  check.mesh = mesh_of_workers(config, check.roles(), check.hosts_of_ranks(), check.host_names());
  constexpr std::int64_t kUnknownSamples = std::int64_t{1} << 50;
  if (!check.inputs) return plan_batch(config, check.mesh->replicas(), kUnknownSamples);
  check.plan = plan_run(config, *check.mesh, check.mesh->coord(0), std::move(*check.inputs));
  return check.plan->batch;
}

void print_batch(Check& check) {
  const Config& config = check.config;
  const BatchPlan batch = make_plan(check);
  const Mesh& mesh = *check.mesh;
  const std::string roles = check.servers() == 0 ? ""
                                                 : fmt::format(" = {} + {}", counted(check.workers(), "worker"),
                                                               counted(check.servers(), "server"));
  line("ranks", fmt::format("{}{} on {} (at most {} a host); mesh: {}", check.ranks, roles,
                            counted(check.hosts, "host"), check.ranks_a_host(),
                            mesh.splits() ? mesh.text() : counted(mesh.replicas(), "data-parallel replica")));
  if (config.train.reproducible)
    return line("batch", fmt::format("{} = {} micro-shards of {}, {} on each of {}; the same bits on {}", batch.global,
                                     config.train.micro_shards, batch.micro.front(), batch.accumulation,
                                     counted(mesh.replicas(), "replica"), same_bits_text(config, mesh)));
  const std::string where = config.data.as_replicas > 0 ? " processed one after another (data.as_replicas)" : "";
  line("batch",
       fmt::format("{} = micro-batch {} x accumulation {} x {}{}, {} scaling", batch.global, list_text(batch.micro),
                   batch.accumulation, counted(static_cast<std::int64_t>(batch.micro.size()), "replica"), where,
                   config.batch.scale_with_replicas ? "weak" : "strong"));
}

// "480 samples: a0.h5, 180 of a3.h5"
std::string owned_text(const Dataset& data, const SamplePlan& plan, int replica) {
  std::string out = fmt::format("{} samples:", count_text(plan.owned(replica)));
  const auto& runs = plan.runs(replica);
  constexpr std::size_t kShown = 6;
  for (std::size_t i = 0; i < std::min(runs.size(), kShown); ++i) {
    const Shard& file = data.shards[static_cast<std::size_t>(runs[i].file)];
    const std::string part = runs[i].count == file.samples ? "" : fmt::format("{} of ", count_text(runs[i].count));
    out += fmt::format("{} {}{}", i ? "," : "", part, std::filesystem::path(file.path).filename().string());
  }
  return runs.size() > kShown ? out + fmt::format(" and {} more", runs.size() - kShown) : out;
}

void print_shards(Check& check) {
  const Config& config = check.config;
  const SamplePlan& plan = check.plan->shards;
  const Dataset& data = check.plan->train;
  if (plan.stream())
    line("streams", fmt::format("{} rows, each of which {} from step to step", plan.global_batch(),
                                data.series ? "reads whole series" : "continues its text"));
  if (!plan.buckets().empty()) line("buckets", fmt::format("of up to {} steps", list_text(plan.buckets(), ", ")));
  line("shards", fmt::format("by {}{}, {} for {}", name_of(plan.sharding()),
                             config.data.sharding == Sharding::automatic ? " (auto)" : "",
                             counted(static_cast<std::int64_t>(data.shards.size()), "file"),
                             counted(plan.replicas(), "replica")));
  if (plan.sharding() == Sharding::file || plan.sharding() == Sharding::node)
    for (int r = 0; r < std::min(plan.replicas(), 16); ++r)
      line("", fmt::format("replica {}: {}", r, owned_text(data, plan, r)));
  line("steps", fmt::format("{} an epoch, {} in all", count_text(check.plan->steps_per_epoch),
                            count_text(check.plan->total_steps)));
  if (!data.label_sample) return;
  if (const ClassMix mix = class_mix(*data.label_sample, &plan); mix.known) line("classes", mix_text(mix));
}

// Prints the checkpoint from which the run would continue.
void print_start(const Check& check) {
  const Decision start = foresee_start(check.config, *check.plan);
  if (const std::string frozen = frozen_text(check.plan->graph.parameters()); !frozen.empty()) line("frozen", frozen);
  if (!start.told.empty())
    line(!start.weights.empty() ? "weights" : start.finished || !start.first_step() ? "start" : "hint", start.told);
  if (const std::string told = foresee_replay(check.config, *check.plan, check.roles()); !told.empty())
    line("replay", told);
}

// The threads of a full host, if it has as many cores as this machine.
std::string threads_text(const Check& check, int cores) {
  const std::int64_t ranks = check.ranks_a_host(), given = check.config.device.threads;
  const std::int64_t each = given > 0 ? given : std::max<std::int64_t>(1, cores / ranks), all = each * ranks;
  const std::string total = fmt::format("{} a rank x {} a host = {} on {}", counted(each, "thread"),
                                        counted(ranks, "rank"), count_text(all), counted(cores, "core"));
  if (all <= cores) return total;
  const std::string share = fmt::format("{:.1f}", static_cast<double>(all) / cores);
  return fmt::format("{}: {} threads share a core, and a step takes about {} times as long as with a core for each",
                     total, share, share);
}

void print_device(Check& check) {
  const DeviceConfig& config = check.config.device;
  try {
    const auto device = counting_device(config);
    line("device", fmt::format("{}: {}", device->name(), device->describe()));
    if (device->on_host() && device->computes()) line("threads", threads_text(check, usable_cores()));
  } catch (const EnvironmentError& error) {
    check.warn(fmt::format("no {} device on this machine ({}): activations are estimated", config.kind, error.what()));
  }
}

// Memory for reading on the busiest rank, with that of the evaluation, which exists at the same time.
ReadMemory reading_of(const Config& config, const RunPlan& plan) {
  const auto own = [&](const Dataset& data, bool changed) { return with_slab(data, plan.part.slab, changed); };
  LoaderOptions training = training_loading(config);
  training.dtype = wide_of(config.device.dtype);
  const ReadMemory reading =
      read_memory(own(plan.train, training.augmentation.any()), largest(plan.batch.per_replica), training);
  if (!plan.test || config.evaluate.by == EvaluateBy::aside) return reading;
  const ReadMemory test =
      read_memory(own(*plan.test, false), config.evaluate.batch, evaluation_loading(config, training.dtype));
  return {.records = reading.records + test.records,
          .decoding = std::max(reading.decoding, test.decoding),
          .making = reading.making + test.making,
          .batches = reading.batches + test.batches};
}

// Throws, after printing, if the model does not fit the ranks or the hosts.
void print_model(Check& check) {
  const RunPlan& plan = *check.plan;
  const Graph& graph = plan.graph;
  const Mesh& mesh = *check.mesh;
  print_device(check);
  const ReadMemory reading = reading_of(check.config, plan);
  MeshTable table;
  if (mesh.splits())
    table = mesh_table(check.config, plan, mesh, check.hosts_of_ranks());
  else
    line("memory",
         memory_text(check.config, table.memory.emplace_back(plan.memory_of(check.config, plan.part, mesh.coord(0))),
                     &reading));
  line("exchange", exchange_text({.config = check.config,
                                  .parameters = graph.parameters(),
                                  .hosts = check.hosts_of_replicas(),
                                  .servers = check.servers(),
                                  .rows_apart = rows_apart(check.config, plan.replicas)}));
  const std::int64_t of_rank =
      plan.replicas < plan.shards.replicas() ? plan.batch.global : largest(plan.batch.per_replica);
  const std::vector<std::string> tables = sparse_lines(check.config, graph, check.hosts_of_replicas(), of_rank);
  for (const std::string& text : tables) line(&text == &tables.front() ? "sparse" : "", text);
  const ModelCosts costs = model_costs(graph, check.config.device.dtype);
  line("model",
       fmt::format("{}: {} parameters, {} FLOPs forward and {} backward a sample",
                   check.config.model.zoo.empty() ? "layers of the file" : check.config.model.zoo,
                   count_text(costs.parameters), short_count(costs.forward_flops), short_count(costs.backward_flops)));
  if (mesh.splits()) fmt::print("\n{}", table.text);
  fmt::print("\n{}", model_table(graph, check.config.device.dtype));
  require_memory(check.config, fullest_host(check, table.memory));
}

void warn_of_run(Check& check) {
  const Config& config = check.config;
  if (!check.plan && !config.run.resume_from.empty()) check.warn("run.resume_from is not read without data.train");
  for (std::string& text : warnings_of_config(config, check.ranks, check.hosts)) check.warn(std::move(text));
  if (!check.plan) return;
  for (std::string& text : warnings_of_plan(config, *check.plan)) check.warn(std::move(text));
}

void print_warnings(const Check& check) {
  if (!check.warnings.empty()) fmt::print("\n");
  for (const std::string& warning : check.warnings) fmt::print("warning: {}\n", warning);
}

void print_plan(Check& check) {
  const Config& config = check.config;
  line("experiment", fmt::format("{} ({}), config hash {}", config.name, config.file, hex64(config_hash(config))));
  for (const std::string& note : check.notes) line("note", note);
  open_data(check);
  if (check.inputs) choose_split_here(check);
  print_batch(check);
  if (check.plan) print_shards(check);
  if (check.plan) print_start(check);
  warn_of_run(check);
  try {
    if (check.plan) print_model(check);
  } catch (const MemoryError&) {  // thrown for a plan that is printed in full
    print_warnings(check);
    throw;
  }
  print_warnings(check);
}

}  // namespace

int run_check(const CheckOptions& options) {
  if (options.keys) {
    std::fputs(keys_text().c_str(), stdout);
    return kExitOk;
  }
  if (options.combinations) {
    std::fputs(combinations_text().c_str(), stdout);
    return kExitOk;
  }
  if (options.config.empty()) throw ConfigError("check: name a config file, or ask for --keys or --combinations");
  Check check;
  check.config = load_config(options.config, options.sets, &check.notes);
  place_ranks(check, options);
  if (options.effective) {
    for (const std::string& note : check.notes) fmt::print(stderr, "echelon: note: {}\n", note);
    std::fputs(echo_config(check.config).c_str(), stdout);
  } else {
    print_plan(check);
  }
  return kExitOk;
}

}  // namespace echelon::cli
