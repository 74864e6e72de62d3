// SPDX-License-Identifier: Apache-2.0
// echelon plan: predicts step time, efficiency and cost for replicas that do not exist, without MPI and without a run.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "cli/memory_text.hpp"
#include "cli/options.hpp"
#include "cli/step_bench.hpp"
#include "config/parse.hpp"
#include "config/traits/algorithms.hpp"
#include "config/traits/codecs.hpp"
#include "exchange/entry.hpp"
#include "model/build.hpp"
#include "parallel/footprint.hpp"
#include "planner/plan_report.hpp"

namespace echelon::cli {
namespace {

constexpr int kMostMeshed = 64;

void check_compared(const std::vector<std::string>& words) {
  const std::vector<std::string> known = {"strategies", "algorithms", "codecs", "meshes", "none"};
  for (const std::string& word : words)
    if (std::find(known.begin(), known.end(), word) == known.end())
      throw ConfigError(unknown_name("--compare", word, known));
}

// Returns the finished run whose step is used: the one with the fewest ranks, then the most steps.
const RunRecord* calibrating(const std::vector<RunRecord>& runs) {
  const RunRecord* best = nullptr;
  for (const RunRecord& run : runs) {
    if (!run.has_summary || run.state != "finished") continue;
    if (!best || run.ranks < best->ranks || (run.ranks == best->ranks && run.timed_steps > best->timed_steps))
      best = &run;
  }
  return best;
}

class Planner {
 public:
  explicit Planner(const PlanOptions& options)
      : options_(options),
        config_(load_config(options.config, options.sets)),
        network_(read_network(options.network.empty() ? network_of_config(config_.network) : options.network)),
        replicas_(replica_list(options.replicas)),
        graph_(build_model(config_.model, bench_samples(config_).form)),
        work_(workload_of(config_, graph_)),
        pricers_(network_, model_group(config_.parallel)) {
    if (!options.from.empty()) runs_ = read_runs(options.from);
    run_ = calibrating(runs_);
    if (!options.from.empty() && !run_)
      throw DataError("--from: none of the runs finished, so that no step is measured");
    if (options.step.empty() && !run_)
      throw ConfigError(
          "no step was given: --from RUN takes a measured one, --step forward_ms=60,backward_ms=120 describes one");
    step_ = !options.step.empty() ? described_step(options.step, static_cast<double>(config_.batch.global))
                                  : measured_step(*run_);
    for (const RunRecord& run : runs_)  // if several have one codec, the first counts
      if (const auto speed = measured_codec(run); speed && run.state == "finished")
        step_.measured_codecs.emplace(run.config ? coding_of(run.config->exchange) : run.codec, *speed);
    measure_overlap();
  }

  PlanReport report() {
    PlanReport report;
    report.facts = facts();
    report.main = of(config_, replicas_, true);
    report.cost = config_.cost;
    report.cost.node_hour = options_.node_hour.value_or(config_.cost.node_hour);
    for (const Config& config : variants()) report.variants.push_back(of(config, replicas_, false));
    if (requested("meshes")) add_meshes(report);
    add_points(report);
    if (work_.sparse_tables) report.notes.emplace_back("sparse embeddings are counted as if they were sent whole");
    if (!step_.variation.varies())
      report.notes.emplace_back(
          "steps are assumed to be equal: no jitter was described or measured, and no rank waits");
    return report;
  }

 private:
  bool strong() const { return options_.scaling == "strong"; }

  Forecast of(const Config& config, const std::vector<int>& replicas, bool ranges) {
    Forecast made = forecast({.config = config,
                              .work = work_,
                              .step = step_,
                              .strong = strong(),
                              .network = network_,
                              .replicas = replicas,
                              .pricers = pricers_,
                              .ranges = ranges});
    for (ForecastRow& row : made.rows) row.memory = memory_of(config, row.replicas);
    return made;
  }

  std::vector<std::string> facts() {
    const auto ms = [](double seconds) { return fmt::format("{:.4g}", 1e3 * seconds); };
    std::vector<std::string> lines;
    lines.push_back(fmt::format("model     {}: {} values, {} in {}, {:.3g} FLOPs a value and step", work_.model,
                                count_text(work_.elems), bytes_text(work_.bytes()),
                                counted(static_cast<std::int64_t>(work_.buckets.size()), "bucket"),
                                work_.flops * step_.samples / static_cast<double>(work_.elems)));
    lines.push_back(fmt::format(
        "step      {} ms for {:g} samples: input {}, forward {}, back-propagation {}, optimiser {}, other {}",
        ms(step_.total_s()), step_.samples, ms(step_.data_s), ms(step_.forward_s), ms(step_.backward_s),
        ms(step_.optimiser_s), ms(step_.other_s)));
    lines.push_back("          " + step_.source);
    if (step_.overlap < 1)
      lines.push_back(fmt::format("overlap   hides {:.0f} % of what it would hide with free cores{}",
                                  100 * step_.overlap, overlapping_ ? ": " + overlapping_->folder : ""));
    lines.push_back(fmt::format("varies    by {:.1f} % from step to step, {:.1f} % from replica to replica",
                                100 * step_.variation.jitter(), 100 * step_.variation.spread()));
    lines.push_back(
        fmt::format("network   {}; bandwidth known to {:.0f} %", network_.name, 100 * network_.uncertainty));
    lines.push_back(fmt::format("batch     {}", strong() ? "global batch is kept (strong scaling)"
                                                         : "each replica's batch is kept (weak scaling)"));
    lines.push_back("memory    " + memory());
    return lines;
  }

  std::string memory() {
    if (splits(config_)) return "see echelon check for a split model";
    const int replicas = strong() ? replicas_.front() : replicas_.back();
    return memory_text(config_, footprint(config_, replicas));
  }

  static bool splits(const Config& config) { return model_group(config.parallel) > 1; }

  // Memory of a rank without the strategy's share, which is not in the programs. Cached by number of samples.
  const Footprint& programs_of(std::int64_t micro) {
    const auto found = footprints_.find(micro);
    if (found != footprints_.end()) return found->second;
    RankBatches batches{.micro = {micro}, .accumulation = config_.batch.accumulation};
    return footprints_.emplace(micro, footprint_of(config_, graph_, batches)).first->second;
  }
  Footprint footprint(const Config& config, int replicas) {
    const double share = strong() ? step_.samples / replicas : step_.samples;
    const auto micro = static_cast<std::int64_t>(share) / config_.batch.accumulation;
    Footprint bytes = programs_of(std::max<std::int64_t>(1, micro));
    set_strategy_memory(config, exchange_arenas(config, graph_.parameters(), replicas), replicas, bytes);
    return bytes;
  }
  double memory_of(const Config& config, int replicas) {
    if (splits(config)) return 0;
    const Footprint bytes = footprint(config, replicas);
    return bytes.total() + bytes.host;
  }

  bool requested(const char* what) const {
    return std::find(options_.compare.begin(), options_.compare.end(), what) != options_.compare.end();
  }

  // Returns the config with every other strategy, all-reduce and codec that --compare asks for.
  std::vector<Config> variants() const {
    std::vector<Config> all;
    const ExchangeConfig& own = config_.exchange;
    if (requested("algorithms") && strategy_traits(own.strategy).all_reduces() && own.codec == "none")
      for (const AlgorithmTraits& algorithm : kAlgorithms)
        if (algorithm.name != own.algorithm && !algorithm.measured && !algorithm.library && !algorithm.in_memory)
          all.emplace_back(config_).exchange.algorithm = algorithm.name;
    if (requested("codecs") && strategy_traits(own.strategy).carries_codes)
      for (const CodecTraits& codec : kCodecs)
        if (codec.name != own.codec) all.emplace_back(config_).exchange.codec = codec.name;
    if (requested("strategies"))
      for (const StrategyTraits& strategy : kStrategies) {
        if (strategy.name == own.strategy) continue;
        ExchangeConfig& exchange = all.emplace_back(config_).exchange;
        exchange.strategy = strategy.name;
        if (!strategy.carries_codes) exchange.codec = kNoCodec.name;
      }
    return all;
  }

  void add_meshes(PlanReport& report) {
    if (splits(config_))
      throw ConfigError("--compare meshes needs a config whose model is not split; leave [parallel] out");
    for (const int ranks : replicas_) {
      if (ranks < 2 || ranks > kMostMeshed) continue;
      const MeshRequest request{
          .config = config_, .graph = graph_, .step = step_, .network = network_, .strong = strong()};
      for (MeshForecast& mesh : mesh_forecasts(request, ranks)) report.meshes.push_back(std::move(mesh));
    }
    if (report.meshes.empty() || replicas_.back() > kMostMeshed)
      report.notes.push_back(fmt::format("meshes are listed for 2 to {} ranks", kMostMeshed));
  }

  // Calls `use` with every finished run and the request that predicts it, with its own config and ranks.
  template <class Use>
  void for_each_finished_run(const Use& use) {
    for (const RunRecord& run : runs_) {
      if (!run.has_summary || run.state != "finished" || !run.config) continue;
      const Config& config = *run.config;
      StepModel step = step_;
      const double samples = static_cast<double>(run.global_batch) / std::max(1, run.mesh.data);
      if (samples != step.samples) step = step.of_samples(samples);
      const Workload work = workload_of(config, graph_);
      use(run, ForecastRequest{.config = config,
                               .work = work,
                               .step = step,
                               .strong = false,
                               .network = network_,
                               .replicas = {run.mesh.data},
                               .pricers = pricers_});
    }
  }

  // Takes the share of the exchange that overlap hides from the first run on several replicas that overlaps.
  void measure_overlap() {
    if (!options_.step.empty()) return;
    for_each_finished_run([&](const RunRecord& run, const ForecastRequest& request) {
      const ExchangeConfig& exchange = request.config.exchange;
      if (overlapping_ || &run == run_ || run.mesh.data < 2 || exchange.overlap == Overlap::none ||
          !strategy_traits(exchange.strategy).sums_gradients())
        return;
      overlapping_ = &run;
      step_.overlap = overlap_share(request, run.mesh.data, measured_period_s(run));
    });
  }

  void add_points(PlanReport& report) {
    for_each_finished_run([&](const RunRecord& run, const ForecastRequest& request) {
      Forecast made = forecast(request);
      report.points.push_back({.folder = run.folder,
                               .title = made.title,
                               .replicas = run.mesh.data,
                               .measured_s = measured_period_s(run),
                               .predicted = made.rows.front(),
                               .calibrates = (&run == run_ && options_.step.empty()) || &run == overlapping_});
    });
  }

  const PlanOptions& options_;
  Config config_;
  NetworkModel network_;
  std::vector<int> replicas_;
  Graph graph_;
  Workload work_;
  Pricers pricers_;
  std::vector<RunRecord> runs_;
  const RunRecord* run_ = nullptr;          // measures the step
  const RunRecord* overlapping_ = nullptr;  // measures what overlap hides; null: none
  StepModel step_;
  std::map<std::int64_t, Footprint> footprints_;  // by samples of a micro-batch
};

}  // namespace

int run_plan(const PlanOptions& options) {
  if (options.scaling != "weak" && options.scaling != "strong")
    throw ConfigError(fmt::format("--scaling {}: must be weak or strong", options.scaling));
  check_compared(options.compare);
  const PlanReport report = Planner(options).report();
  std::fputs(plan_text(report, PlanFormat::text).c_str(), stdout);
  if (options.out.empty()) return kExitOk;
  make_folders(options.out);
  fmt::print("written:\n");
  const auto write = [&](const char* ending, const std::string& text) {
    const std::string path = fmt::format("{}/{}.{}", options.out, options.name, ending);
    write_file_whole(path, text);
    fmt::print("  {}\n", path);
  };
  if (const std::string figure = plan_svg(report); !figure.empty()) write("svg", figure);
  write("md", "# " + escaped_for_markdown(options.name) + "\n\n" + plan_text(report, PlanFormat::markdown));
  write("csv", plan_csv(report));
  write("json", plan_json(report).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  return kExitOk;
}

}  // namespace echelon::cli
