// echelon check: what a run would do, worked out without MPI and without starting it. Refuses what train would refuse.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/mesh_text.hpp"
#include "cli/options.hpp"
#include "cli/sparse_text.hpp"
#include "comm/codec/coded_bucket.hpp"
#include "comm/collective/algorithms.hpp"
#include "config/derive.hpp"
#include "config/parse.hpp"
#include "data/dataset.hpp"
#include "data/describe.hpp"
#include "data/shard_plan.hpp"
#include "device/device.hpp"
#include "exchange/buckets.hpp"
#include "exchange/request.hpp"
#include "exchange/server_form.hpp"
#include "model/build.hpp"
#include "parallel/choose.hpp"
#include "parallel/footprint.hpp"
#include "train/run_plan.hpp"

namespace echelon::cli {
namespace {

// What the plan is worked out from, and the warnings on the way.
struct Check {
  Config config;
  int replicas = 1;
  int hosts = 1;
  std::optional<Dataset> data;
  BatchPlan batch;
  std::optional<ShardPlan> shards;
  std::vector<std::string> warnings;

  void warn(std::string text) { warnings.push_back(std::move(text)); }
  int workers() const { return replicas * ranks_of_replica(config.parallel); }
  int servers() const { return static_cast<int>(config.exchange.server_ranks); }
  int ranks() const { return workers() + servers(); }
  int ranks_a_host() const { return (ranks() + hosts - 1) / hosts; }
  // As launchers do: ranks fill one host after another.
  std::vector<int> hosts_of_ranks() const {
    std::vector<int> of_rank;
    for (int r = 0; r < ranks(); ++r) of_rank.push_back(r / ranks_a_host());
    return of_rank;
  }
  std::vector<std::string> host_names() const {
    std::vector<std::string> names;
    for (int h = 0; h < hosts; ++h) names.push_back(std::to_string(h));
    return names;
  }
  // Throws where model groups do not fit the hosts.
  Mesh mesh() const {
    std::vector<int> of_workers = hosts_of_ranks();
    of_workers.resize(static_cast<std::size_t>(workers()));
    return Mesh(config.parallel, of_workers, host_names());
  }
  // Of the ranks that hold one part of the model, and of servers on ranks of their own.
  std::vector<int> hosts_of_replicas() const {
    const Mesh all = mesh();
    const std::vector<int> of_rank = hosts_of_ranks();
    std::vector<int> of_replica;
    for (const int rank : all.holders(0)) of_replica.push_back(of_rank[static_cast<std::size_t>(rank)]);
    of_replica.insert(of_replica.end(), of_rank.end() - servers(), of_rank.end());
    return of_replica;
  }
  // Over which gradients are summed, servers left out.
  int holders() const { return replicas * static_cast<int>(config.parallel.space); }
  std::int64_t largest_micro() const { return *std::max_element(batch.micro.begin(), batch.micro.end()); }
};

void line(std::string_view what, const std::string& text) { fmt::print("{:<11} {}\n", what, text); }

std::string list_text(const std::vector<std::int64_t>& values, std::string_view between = "+") {
  if (std::all_of(values.begin(), values.end(), [&](auto v) { return v == values.front(); }))
    return fmt::format("{}", values.front());
  std::string out;
  for (const std::int64_t value : values) out += fmt::format("{}{}", out.empty() ? "" : between, value);
  return out;
}

bool is_pattern(const std::string& location) { return location.find_first_of("*?") != std::string::npos; }

std::string data_text(const std::string& location, const Dataset& data) {
  return fmt::format("{}: {} in {}", location, content_text(data),
                     counted(static_cast<std::int64_t>(data.shards.size()), "file"));
}

// parallel.split = "auto" by counted FLOPs and links that are taken for granted; the run measures both.
void choose_split_here(Check& check) {
  Config& config = check.config;
  if (config.parallel.split != "auto") return;
  check_combinations(config);
  constexpr Link kInside{.latency_s = 5e-6, .bytes_per_s = 5e9}, kBetween{.latency_s = 30e-6, .bytes_per_s = 1.25e9};
  const Graph graph = build_model(config.model, check.data->form());
  SplitCosts costs{.node_s = node_flops(graph, config.device.dtype), .network = {kInside, kBetween}};
  for (double& cost : costs.node_s) cost /= 1e9 * config.device.paced_gflops;
  const SplitChoice choice =
      choose_split(config, graph, {check.hosts_of_ranks(), check.host_names()}, check.data->samples(), costs);
  check.replicas /= ranks_of_replica(choice.parallel);
  config.parallel = choice.parallel;
  fmt::print(
      "{}by {} GFLOP/s a rank, 40 Gbit/s inside hosts and 10 between them; the run measures, and may choose "
      "otherwise\n\n",
      choice.report, config.device.paced_gflops);
}

// Data that is not on this machine is no error of the experiment; data that is here and damaged is.
std::optional<Dataset> open_if_there(Check& check, const std::string& location, std::string_view key) {
  if (!is_pattern(location) && !std::filesystem::exists(location)) {
    check.warn(fmt::format("{} = \"{}\" is not on this machine{}", key, location,
                           key == "data.train" ? ": shards, model and memory are left out" : ""));
    return std::nullopt;
  }
  return open_dataset(location, check.config.data);
}

void print_data(Check& check) {
  const DataConfig& config = check.config.data;
  check.data = open_if_there(check, config.train, "data.train");
  line("data", check.data ? data_text(config.train, *check.data) : config.train + ": not here");
  if (config.test.empty()) {
    check.warn("no data.test: the run will know no accuracy");
    return;
  }
  auto test = open_if_there(check, config.test, "data.test");
  if (check.data && test) see_alike(*test, *check.data);
  line("test data", test ? data_text(config.test, *test) : config.test + ": not here");
  if (check.data && check.data->cut() > 0)
    check.warn(fmt::format("{} of {} training sequences are cut to {} steps (data.sequence_length)",
                           count_text(check.data->cut()), count_text(check.data->samples()), check.data->length()));
}

void print_batch(Check& check) {
  const Config& config = check.config;
  constexpr std::int64_t kUnknownSamples = std::int64_t{1} << 50;
  check.batch = derive_batch(config, check.replicas, check.data ? check.data->samples() : kUnknownSamples);
  const Mesh mesh = check.mesh();
  const std::string roles = check.servers() == 0 ? ""
                                                 : fmt::format(" = {} + {}", counted(check.workers(), "worker"),
                                                               counted(check.servers(), "server"));
  line("ranks", fmt::format("{}{} on {} host{} (at most {} a host); mesh: {}", check.ranks(), roles, check.hosts,
                            check.hosts == 1 ? "" : "s", check.ranks_a_host(),
                            mesh.splits() ? mesh.text() : counted(check.replicas, "data-parallel replica")));
  if (config.train.reproducible)
    return line("batch",
                fmt::format("{} = {} micro-shards of {}, {} on each of {}; the same bits on 1, 2, 4, .. {}",
                            check.batch.global, config.train.micro_shards, check.largest_micro(),
                            check.batch.accumulation, counted(check.replicas, "replica"), config.train.micro_shards));
  line("batch", fmt::format("{} = micro-batch {} x accumulation {} x {} replica{}, {} scaling", check.batch.global,
                            list_text(check.batch.micro), check.batch.accumulation, check.replicas,
                            check.replicas == 1 ? "" : "s", config.batch.scale_with_replicas ? "weak" : "strong"));
}

// "480 samples: a0.h5, 180 of a3.h5"
std::string owned_text(const Dataset& data, const ShardPlan& plan, int replica) {
  std::string out = fmt::format("{} samples:", count_text(plan.owned(replica)));
  const auto runs = plan.runs(replica);
  constexpr std::size_t kShown = 6;
  for (std::size_t i = 0; i < std::min(runs.size(), kShown); ++i) {
    const Shard& file = data.shards[static_cast<std::size_t>(runs[i].file)];
    const std::string part = runs[i].count == file.samples ? "" : fmt::format("{} of ", count_text(runs[i].count));
    out += fmt::format("{} {}{}", i ? "," : "", part, std::filesystem::path(file.path).filename().string());
  }
  return runs.size() > kShown ? out + fmt::format(" and {} more", runs.size() - kShown) : out;
}

void print_shards(Check& check) {
  if (!check.data) return;
  const Config& config = check.config;
  const std::vector<std::int64_t> batch =
      config.data.as_replicas > 0 ? std::vector<std::int64_t>(static_cast<std::size_t>(config.data.as_replicas),
                                                              check.batch.global / config.data.as_replicas)
                                  : check.batch.per_replica;
  check_augmentation(config, *check.data);
  const ShardPlan& plan = check.shards.emplace(plan_request(*check.data, config.data, batch, config.seed));
  if (plan.stream()) line("streams", fmt::format("{} rows, each reads on from step to step", plan.global_batch()));
  if (!plan.buckets().empty()) line("buckets", fmt::format("of up to {} steps", list_text(plan.buckets(), ", ")));
  const char* kind = plan.sharding() == Sharding::file     ? "file"
                     : plan.sharding() == Sharding::record ? "record"
                                                           : "replicated";
  line("shards",
       fmt::format("by {}{}, {} file{} for {} replica{}", kind,
                   config.data.sharding == Sharding::automatic ? " (auto)" : "", check.data->shards.size(),
                   check.data->shards.size() == 1 ? "" : "s", plan.replicas(), plan.replicas() == 1 ? "" : "s"));
  if (plan.sharding() == Sharding::file)
    for (int r = 0; r < std::min(plan.replicas(), 16); ++r)
      line("", fmt::format("replica {}: {}", r, owned_text(*check.data, plan, r)));
  const std::int64_t steps = plan.steps_per_epoch();
  const TrainConfig& train = config.train;
  std::int64_t total = train.epochs > 0 ? train.epochs * steps : train.steps;
  if (train.steps > 0) total = std::min(total, train.steps);
  line("steps", fmt::format("{} an epoch, {} in all", count_text(steps), count_text(total)));
  const ShardPlan::Coverage seen = plan.coverage(0);
  if (seen.never > 0) check.warn(fmt::format("{} samples are not seen in an epoch", count_text(seen.never)));
  if (seen.more > 0 && plan.sharding() != Sharding::replicated)
    check.warn(
        fmt::format("{} samples are seen more than once in an epoch (data.ragged = \"wrap\")", count_text(seen.more)));
}

// Arenas of gradients beside the one: those of finished subtrees of micro-shards.
double tree_levels(const Config& config, const BatchPlan& batch) {
  return config.train.reproducible ? std::log2(static_cast<double>(batch.accumulation)) : 0;
}

void print_device(Check& check) {
  const DeviceConfig& config = check.config.device;
  try {
    const auto device = counting_device(config);
    line("device", fmt::format("{}: {}", device->name(), device->describe()));
  } catch (const EnvironmentError& error) {
    check.warn(fmt::format("no {} device on this machine ({}): activations are estimated", config.kind, error.what()));
  }
}

std::string activations_text(const Footprint& memory) {
  if (memory.estimated) return fmt::format("activations about {} (twice the values)", bytes_text(memory.activations));
  return fmt::format("activations {}, scratch {}, packed weights {}", bytes_text(memory.activations),
                     bytes_text(memory.scratch), bytes_text(memory.packed));
}

void print_memory(Check& check, const Graph& graph) {
  const Config& config = check.config;
  const std::map<std::int64_t, Graph> bucket_graphs =
      graphs_of(config, *check.data, *check.shards, graph);  // refused here where train would refuse them
  std::vector<const Graph*> graphs;
  for (const auto& [bucket, of_bucket] : bucket_graphs) graphs.push_back(&of_bucket);
  if (graphs.empty()) graphs.push_back(&graph);
  Footprint memory = footprint_of(config, graphs, check.largest_micro());
  memory.gradients *= 1 + tree_levels(config, check.batch);
  line("memory", fmt::format("{} a rank: weights {}, gradients {}, optimiser {}, {}; and up to {} of records",
                             bytes_text(memory.total()), bytes_text(memory.weights), bytes_text(memory.gradients),
                             bytes_text(memory.optimiser), activations_text(memory),
                             bytes_text(config.data.buffer_mb * 1024 * 1024)));
  const double limit = config.device.memory_limit_mb * 1024 * 1024;
  if (limit > 0 && memory.total() > limit)
    check.warn(
        fmt::format("device.memory_limit_mb = {} is less than the {} needed; a smaller batch, a larger "
                    "batch.accumulation or a split model ([parallel]) needs less",
                    config.device.memory_limit_mb, bytes_text(memory.total())));
}

// What travels where gradients are coded.
void print_codec(const Check& check, const ParameterSet& parameters, const std::vector<ArenaRange>& buckets,
                 AllreduceRequest request) {
  const ExchangeConfig& exchange = check.config.exchange;
  const auto codec = make_codec(exchange.codec, {.dtype = wide_of(check.config.device.dtype),
                                                 .ranks = check.holders(),
                                                 .density = exchange.density,
                                                 .tau = exchange.tau,
                                                 .index_coding = exchange.index_coding});
  const bool serves = exchange.strategy == "server";
  double bytes = 0;
  for (const ArenaRange& bucket : buckets) {
    request.elems = bucket.elems();
    bytes += serves ? coded_server_bytes(*codec, statistics_in(parameters, bucket), request)
                    : coded_bytes(*codec, exchange.algorithm, request);
  }
  const char* route = serves                                      ? "gradients pushed, weights pulled,"
                      : codec->info().route == CodecRoute::any    ? "all-reduce"
                      : codec->info().route == CodecRoute::direct ? "reduce-scatter and all-gather"
                                                                  : "all-gather";
  std::string text = fmt::format("{}, {} coded as {} in {} bucket{}: {} a step over all ranks", exchange.strategy,
                                 route, exchange.codec, buckets.size(), buckets.size() == 1 ? "" : "s",
                                 std::isfinite(bytes) ? bytes_text(bytes) : "bytes that depend on the values");
  if (exchange.codec_warmup_steps > 0)
    text += fmt::format("; as they are before step {}", count_text(exchange.codec_warmup_steps));
  line("exchange", text);
}

void print_exchange(const Check& check, const ParameterSet& parameters) {
  const Config& config = check.config;
  const auto elem = static_cast<std::int64_t>(size_of(wide_of(config.device.dtype)));
  const auto buckets = make_buckets(parameters, static_cast<std::size_t>(elem), config.exchange.bucket_mb * 1024 * 1024,
                                    rows_apart(config, check.replicas));
  if (check.holders() + check.servers() == 1) {
    line("exchange", "none: one replica");
    return;
  }
  if (config.exchange.algorithm == "auto") {
    line("exchange", fmt::format("{}; algorithm, segments and buckets are measured and chosen when the run starts",
                                 config.exchange.strategy));
    return;
  }
  AllreduceRequest request =
      allreduce_request(config.exchange, check.hosts_of_replicas(), wide_of(config.device.dtype));
  const bool serves = config.exchange.strategy == "server";
  Price sum;
  for (const ArenaRange& bucket : buckets) {
    request.elems = bucket.elems();
    const Price price = price_allreduce(serves ? "server" : config.exchange.algorithm, request);
    sum.messages += price.messages;
    sum.payload_elems += price.payload_elems;
    sum.steps = std::max(sum.steps, price.steps);
  }
  if (config.exchange.codec != "none") return print_codec(check, parameters, buckets, request);
  const bool library = config.exchange.algorithm == "mpi" || sums_on_devices(config.exchange.algorithm);
  line("exchange",
       fmt::format("{}, {} in {} bucket{}: {} a step over all ranks{}", config.exchange.strategy,
                   serves ? "gradients pushed, weights pulled"
                          : algorithm_text(config.exchange, check.holders()) + " all-reduce",
                   buckets.size(), buckets.size() == 1 ? "" : "s",
                   bytes_text(static_cast<double>(sum.payload_elems * elem)),
                   library ? " (the library's own way may differ)"
                           : fmt::format(", {} messages, {} in a row", count_text(sum.messages), sum.steps)));
}

void print_model(Check& check) {
  if (!check.data) return;
  const Graph graph = build_model(check.config.model, check.data->form());
  check_sparse(check.config, graph.parameters());
  const Mesh mesh = check.mesh();
  print_device(check);
  if (!mesh.splits()) print_memory(check, graph);
  print_exchange(check, graph.parameters());
  const std::vector<std::string> tables =
      sparse_lines(check.config, graph, check.hosts_of_replicas(), check.largest_micro() * check.batch.accumulation);
  for (const std::string& table : tables) line(&table == &tables.front() ? "sparse" : "", table);
  const ModelCosts costs = model_costs(graph, check.config.device.dtype);
  const bool normalises = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                      [](const Node& node) { return node.layer->kind() == "batch_norm"; });
  if (normalises && check.largest_micro() == 1) check.warn("batch_norm with one sample a micro-batch has no variance");
  line("model",
       fmt::format("{}: {} parameters, {} FLOPs forward and {} backward a sample",
                   check.config.model.zoo.empty() ? "layers of the file" : check.config.model.zoo,
                   count_text(costs.parameters), short_count(costs.forward_flops), short_count(costs.backward_flops)));
  if (mesh.splits())
    fmt::print("\n{}", mesh_table(check.config, graph, mesh, check.hosts_of_ranks(), check.largest_micro()));
  fmt::print("\n{}", model_table(graph, check.config.device.dtype));
}

void warn_of_config(Check& check) {
  const Config& config = check.config;
  const CheckpointConfig& checkpoint = config.checkpoint;
  if (checkpoint.every_steps == 0 && checkpoint.every_minutes == 0 && checkpoint.every_epochs == 0)
    check.warn("no checkpoints: a run that is stopped starts over");
  if (config.device.kind == "paced")
    check.warn("device.kind = \"paced\" sleeps instead of computing: nothing is learned");
  if (check.ranks() % check.hosts != 0)
    check.warn(fmt::format("{} ranks do not divide evenly over {} hosts", check.ranks(), check.hosts));
}

void print_plan(Check& check) {
  const Config& config = check.config;
  line("experiment", fmt::format("{} ({}), config hash {}", config.name, config.file, hex64(config_hash(config))));
  print_data(check);
  if (check.data) choose_split_here(check);
  print_batch(check);
  print_shards(check);
  warn_of_config(check);
  print_model(check);
  if (!check.warnings.empty()) fmt::print("\n");
  for (const std::string& warning : check.warnings) fmt::print("warning: {}\n", warning);
}

}  // namespace

int run_check(const CheckOptions& options) {
  if (options.keys) {
    std::fputs(keys_text().c_str(), stdout);
    return kExitOk;
  }
  if (options.config.empty()) throw ConfigError("check: name a config file, or ask for --keys");
  if (options.replicas < 1) throw ConfigError(fmt::format("--replicas {}: at least 1", options.replicas));
  Check check;
  check.config = load_config(options.config, options.sets);
  check.replicas = options.replicas;
  check.hosts = options.hosts;
  if (check.hosts < 1 || check.hosts > check.ranks())
    throw ConfigError(fmt::format("--hosts {}: 1 to {} (the number of ranks)", check.hosts, check.ranks()));
  if (options.effective) {
    std::fputs(echo_config(check.config).c_str(), stdout);
  } else {
    settle_recurrent(check.config);
    print_plan(check);
  }
  std::fflush(stdout);
  return kExitOk;
}

}  // namespace echelon::cli
