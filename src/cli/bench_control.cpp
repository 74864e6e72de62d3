// SPDX-License-Identifier: Apache-2.0
// echelon bench control: the cost per rank of control words, news, beats, agreement, sums of evaluations and plans in a
// run with k ranks. One process, no launcher: the ranks' machines and plans run on virtual time.
#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/control_bench.hpp"
#include "cli/metered.hpp"
#include "cli/options.hpp"
#include "cli/plan_bench.hpp"
#include "cli/step_bench.hpp"
#include "comm/collective/executor.hpp"
#include "comm/engine.hpp"
#include "comm/part_transport.hpp"
#include "comm/virtual/world.hpp"
#include "config/parse.hpp"
#include "exchange/allreduce_request.hpp"
#include "exchange/buckets.hpp"
#include "model/build.hpp"

namespace echelon::cli {
namespace {

constexpr int kRanksOfHost = 8;  // for `hierarchical`
constexpr int kMostRanks = 1 << 16;

std::string both(const BusiestAndMean& of, const std::function<std::string(double)>& text) {
  return fmt::format("{} / {}", text(of.busiest), text(of.mean));
}

std::string number(double value) {
  return fmt::format("{:.{}f}", value, value < 10 && value != std::floor(value) ? 1 : 0);
}
std::string micros(double seconds) { return fmt::format("{:.1f}", 1e6 * seconds); }
std::string bytes(double value) { return count_text(std::llround(value)); }

Table table_of(const std::vector<ControlCost>& costs) {
  Table table({"what", "each", "sent", "received", "bytes sent", "links", "peers", "us", "bytes held"});
  for (const ControlCost& cost : costs)
    table.row({cost.part, cost.round, both(cost.sent, number), both(cost.received, number),
               both(cost.sent_bytes, bytes), std::to_string(cost.links), both(cost.peers, number),
               both(cost.cpu_s, micros), both(cost.held_bytes, bytes)});
  return table;
}

// Sizes of a rank's objects that have an entry for each rank.
Table tables_by_rank(int ranks) {
  VirtualWorld world(ranks, {});
  Meter engine, part, executor;
  std::unique_ptr<Engine> with_engine;
  {
    auto transport = world.transport(0);
    const Metered own(engine);
    with_engine = std::make_unique<Engine>(std::move(transport));
  }
  std::vector<int> members;
  for (int rank = 0; rank < ranks; ++rank) members.push_back(rank);
  std::unique_ptr<Transport> with_part;
  {
    std::shared_ptr<Transport> whole = world.transport(0);
    const Metered own(part);
    with_part = make_part_transport(std::move(whole), std::move(members), 0);
  }
  double value = 0;
  const auto plan = make_broadcast(0, ranks, 0, 1);
  std::optional<Executor> with_executor;
  {
    const Metered own(executor);
    with_executor.emplace(EngineOptions{}.window);
    with_executor->start(plan, &value, DType::f64, 0);
  }
  Table table({"object", "bytes held"});
  table.row({"engine, without the stack of its thread", bytes(static_cast<double>(engine.bytes))});
  table.row({"executor, one for each plan in progress", bytes(static_cast<double>(executor.bytes))});
  table.row({"transport of a crew", bytes(static_cast<double>(part.bytes))});
  return table;
}

Table plan_table(const BenchControlOptions& options, int ranks, const Config* config,
                 const std::vector<std::int64_t>& buckets) {
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back(rank / kRanksOfHost);
  std::vector<std::string> heads = {"algorithm", "steps", "ms", "bytes held"};
  if (config) heads.insert(heads.end(), {"all buckets: steps", "ms", "bytes held"});
  Table table(heads);
  for (const std::string& algorithm : planned_algorithms()) {
    AllreduceRequest request = config ? allreduce_request(config->exchange, hosts, DType::f32) : AllreduceRequest{};
    request.ranks = ranks;
    request.hosts = hosts;
    const auto cells = [&](const std::vector<std::int64_t>& elems, std::vector<std::string>& row) {
      const PlanCost cost = measure_plans(algorithm, request, elems, options.rounds);
      row.insert(row.end(),
                 {count_text(cost.steps), fmt::format("{:.3f}", 1e3 * cost.build_s), bytes(cost.held_bytes)});
    };
    std::vector<std::string> row = {algorithm};
    cells({static_cast<std::int64_t>(options.mb * (1 << 20) / 4)}, row);
    if (config) cells(buckets, row);
    table.row(std::move(row));
  }
  return table;
}

}  // namespace

int run_bench_control(const BenchControlOptions& options) {
  if (options.rounds < 1) throw ConfigError("--rounds must be at least 1");
  if (!(options.mb > 0 && options.mb <= 4096)) throw ConfigError("--mb must be above 0 and at most 4096");
  for (const int ranks : options.ranks)
    if (ranks < 2 || ranks > kMostRanks)
      throw ConfigError(fmt::format("--ranks {}: must be 2 to {}", ranks, count_text(kMostRanks)));
  std::optional<Config> config;
  std::vector<std::int64_t> buckets;
  if (!options.config.empty()) {
    config = load_config(options.config, options.sets);
    const Graph graph = build_model(config->model, bench_samples(*config).form);
    for (const ArenaRange& bucket :
         make_buckets(graph.parameters(), size_of(DType::f32), config->exchange.bucket_mb * (1 << 20)))
      buckets.push_back(bucket.elems());
  }
  const auto print = [&](const Table& table) {
    fmt::print("{}\n", options.markdown ? table.markdown() : table.text());
  };
  for (const int ranks : options.ranks) {
    fmt::print(
        "{}{} ranks: messages, processor time (us, median of {} rounds) and heap of one rank, busiest / mean\n\n",
        options.markdown ? "## " : "", count_text(ranks), options.rounds);
    print(table_of(measure_machines(ranks, options.rounds)));
    print(table_of(measure_collectives(ranks, options.rounds)));
    print(tables_by_rank(ranks));
    fmt::print("plans of an all-reduce, for the rank that takes longest: one bucket of {}{}\n\n",
               bytes_text(options.mb * (1 << 20)),
               config ? fmt::format(", and the {} buckets of {}", buckets.size(), options.config) : "");
    print(plan_table(options, ranks, config ? &*config : nullptr, buckets));
  }
  return kExitOk;
}

}  // namespace echelon::cli
