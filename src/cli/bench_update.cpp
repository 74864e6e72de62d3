// SPDX-License-Identifier: Apache-2.0
// echelon bench update: measures how long each optimiser rule takes for one pass over a model's parameters, and how
// fast a server of an asynchronous run applies an update.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options.hpp"
#include "cli/served_bench.hpp"
#include "cli/step_bench.hpp"
#include "config/parse.hpp"
#include "model/build.hpp"
#include "model/device_options.hpp"

namespace echelon::cli {
namespace {

// Median seconds of an update of all parameters, norms and clipping included.
double update_seconds(const OptimiserConfig& config, Arenas& arenas, int rounds) {
  Optimiser optimiser(config, arenas);
  const ArenaRange all{0, arenas.elems()};
  std::vector<double> times;
  for (int round = -3; round < rounds; ++round) {
    const double start = now_s();
    optimiser.begin_step(round + 3, 1e-6);
    if (optimiser.clips()) optimiser.clip(optimiser.measure(all));
    optimiser.apply(all);
    arenas.device().synchronize();
    if (round >= 0) times.push_back(now_s() - start);
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<std::size_t>(rounds / 2)];
}

}  // namespace

int run_bench_update(const BenchUpdateOptions& options) {
  if (options.rounds < 1) throw ConfigError("--rounds must be at least 1");
  if (options.threads < 1) throw ConfigError("--threads must be at least 1");
  const Config config = load_config(options.config, options.sets);
  const Graph graph = build_model(config.model, bench_samples(config).form);
  const std::unique_ptr<Device> device =
      open_device(config.device.kind, device_options(config.device, options.threads));
  Arenas arenas(*device, graph.parameters(), wide_of(config.device.dtype));
  arenas.initialise(config.seed);

  // Weights and the rule's state are read and written, the gradient is read.
  const auto bytes_of = [&](const RuleInfo& rule) {
    return static_cast<double>(3 + 2 * rule.arenas()) * static_cast<double>(arenas.elems()) *
           static_cast<double>(size_of(arenas.dtype()));
  };
  OptimiserConfig with = config.optimiser;
  with.rule = "sgd";
  const double sgd_s = update_seconds(with, arenas, options.rounds);
  Table table({"rule", "time", "relative to sgd", "arenas kept", "GB/s"});
  nlohmann::ordered_json measured;
  const auto row = [&](const std::string& name) {
    const RuleInfo& rule = rule_of(with);
    const double seconds = update_seconds(with, arenas, options.rounds);
    measured[name + "_s"] = seconds;
    table.row({name, seconds_text(seconds), fmt::format("{:.2f}", seconds / sgd_s), std::to_string(rule.arenas()),
               fmt::format("{:.1f}", bytes_of(rule) / seconds / 1e9)});
  };
  for (const std::string& name : rule_names()) {
    with.rule = name;
    row(name);
  }
  with.rule = "sgd", with.clip_norm = 1e30;
  row("sgd, norm measured for clipping");
  if (options.json) {
    fmt::print("{}\n", measured.dump());
    return kExitOk;
  }
  fmt::print("{}\n{} values\n\n{}\n{}", device->describe(), count_text(arenas.elems()), table.text(),
             served_table(config.optimiser, graph.parameters(), arenas.dtype(), options.rounds));
  return kExitOk;
}

}  // namespace echelon::cli
