// SPDX-License-Identifier: Apache-2.0
// echelon bench step: measures how long a training step of one rank takes, and where the time goes.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/peak_memory.hpp"
#include "base/text.hpp"
#include "cli/amdahl.hpp"
#include "cli/options.hpp"
#include "cli/step_bench.hpp"
#include "config/parse.hpp"

namespace echelon::cli {
namespace {

double peak_resident_bytes() { return peak_memory_mb() * (1 << 20); }

std::string percent(double part, double whole) { return fmt::format("{:.1f} %", 100 * part / whole); }

// Whether the op does arithmetic, so that GFLOP/s are meaningful; a rate for moving memory is not worth comparing.
bool is_arithmetic(const OpSpec& spec) {
  return std::holds_alternative<ConvDims>(spec.dims) || std::holds_alternative<DenseDims>(spec.dims) ||
         std::holds_alternative<RnnDims>(spec.dims);
}

std::vector<std::string> rate_cells(double work, double seconds, double peak) {
  if (work == 0) return {"", ""};
  return {fmt::format("{:.0f}", work / seconds / 1e9), percent(work / seconds, peak)};
}

// One row per layer and direction, in the order of the step.
std::string layer_table(const std::vector<OpReport>& ops, double update_s, double total_s, double peak) {
  struct Part {
    std::string node;
    bool backward;
    double seconds = 0, work = 0;
  };
  std::vector<Part> parts;
  std::map<std::pair<std::string, bool>, std::size_t> known;
  for (const OpReport& op : ops) {
    const auto [place, fresh] = known.try_emplace({op.node, op.backward}, parts.size());
    if (fresh) parts.push_back({op.node, op.backward});
    Part& part = parts[place->second];
    part.seconds += op.seconds;
    if (is_arithmetic(op.spec)) part.work += flops(op.spec);
  }
  Table table({"layer", "direction", "time", "share", "GFLOP/s", "of peak"});
  for (const Part& part : parts) {
    std::vector<std::string> cells = {part.node, part.backward ? "backward" : "forward", seconds_text(part.seconds),
                                      percent(part.seconds, total_s)};
    for (std::string& cell : rate_cells(part.work, part.seconds, peak)) cells.push_back(std::move(cell));
    table.row(std::move(cells));
  }
  table.row({"optimiser", "update", seconds_text(update_s), percent(update_s, total_s), "", ""});
  return table.text();
}

std::string op_table(const std::vector<OpReport>& ops, double total_s, double peak) {
  Table table({"layer", "op", "layouts", "implementation", "time", "share", "GFLOP/s", "of peak"});
  for (const OpReport& op : ops) {
    std::string layouts;
    const std::vector<ArgInfo> args = signature(op.spec);
    for (std::size_t a = 0; a < args.size(); ++a)
      if (args[a].movable) layouts += fmt::format("{}{}", layouts.empty() ? "" : " ", name_of(op.spec.layouts[a]));
    std::vector<std::string> cells = {op.node,           op.spec.text(),           layouts,
                                      op.implementation, seconds_text(op.seconds), percent(op.seconds, total_s)};
    const double work = is_arithmetic(op.spec) ? flops(op.spec) : 0;
    for (std::string& cell : rate_cells(work, op.seconds, peak)) cells.push_back(std::move(cell));
    table.row(std::move(cells));
  }
  return table.text();
}

// Writes {"<spec text>": seconds, ..}: the times that the paced device sleeps.
void write_table(const std::string& path, const std::vector<OpReport>& ops) {
  std::map<std::string, double> seconds;
  for (const OpReport& op : ops) seconds[op.spec.text()] = op.seconds;
  std::string json;
  for (const auto& [spec, s] : seconds) json += fmt::format("{}  \"{}\": {:.9f}", json.empty() ? "" : ",\n", spec, s);
  write_file_whole(path, "{\n" + json + "\n}\n");
}

void print_report(StepBench& bench, const BenchStepOptions& options, const BenchTimes& times, std::int64_t batch) {
  const std::vector<OpReport> ops = bench.profile();
  const double peak = bench.peak_flops();
  double total_s = bench.update_s();
  for (const OpReport& op : ops) total_s += op.seconds;

  fmt::print("{}\n", bench.device().describe());
  const SampleForm& form = bench.samples().form;
  if (!bench.layouts().empty()) fmt::print("layouts {}\n", bench.layouts());
  fmt::print("random {} of {} in {} classes, in the form of {}\n", form.tokens() ? "tokens" : "samples",
             form.shape.text(), form.classes, bench.samples().origin);
  if (form.label.rank() > 0 && !form.dense)
    fmt::print("{:.0f} tokens/s\n", static_cast<double>(batch * form.label.elems()) / times.median_s);
  fmt::print("{:.1f} samples/s: a step of {} samples takes {} (median of {}), at least {}\n",
             static_cast<double>(batch) / times.median_s, batch, seconds_text(times.median_s), times.steps,
             seconds_text(times.min_s));
  fmt::print("a large matrix product runs at {:.0f} GFLOP/s here\n\n", peak / 1e9);
  fmt::print("{}\n", layer_table(ops, bench.update_s(), total_s, peak));
  if (options.ops) fmt::print("{}\n", op_table(ops, total_s, peak));
  fmt::print("memory: {} on the device ({} activations, {} scratch), {} of the process at its peak\n",
             bytes_text(static_cast<double>(bench.device().peak_bytes())),
             bytes_text(static_cast<double>(bench.program().activation_bytes())),
             bytes_text(static_cast<double>(bench.program().scratch_bytes())), bytes_text(peak_resident_bytes()));
  if (!options.table.empty()) write_table(options.table, ops);
}

void add_ops(const std::vector<OpReport>& ops, double peak, nlohmann::ordered_json& json) {
  json["peak_flops"] = peak;
  for (const OpReport& op : ops) {
    nlohmann::ordered_json row = {
        {"layer", op.node}, {"op", op.spec.text()}, {"implementation", op.implementation}, {"seconds", op.seconds}};
    if (is_arithmetic(op.spec)) row["of_peak"] = flops(op.spec) / op.seconds / peak;
    json["ops"].push_back(std::move(row));
  }
}

// One line. --ops adds the rate of a large product and every op by itself, with "of_peak" if it does arithmetic.
nlohmann::ordered_json step_json(StepBench& bench, const Config& config, const BenchStepOptions& options,
                                 const BenchTimes& times, std::int64_t batch) {
  nlohmann::ordered_json json = {{"model", config.model.zoo.empty() ? config.name : config.model.zoo},
                                 {"device", bench.device().name()},
                                 {"threads", options.threads},
                                 {"batch_per_rank", batch},
                                 {"rate", static_cast<double>(batch) / times.median_s},
                                 {"step_s_median", times.median_s},
                                 {"step_s_min", times.min_s},
                                 {"step_cpu_s", times.cpu_s},
                                 {"unit", "samples/s"},
                                 {"labels_a_sample", bench.samples().form.label.elems()},
                                 {"parameters", bench.arenas().parameters().weight_elems()},
                                 {"device_bytes", bench.device().peak_bytes()},
                                 {"activation_bytes", bench.program().activation_bytes()}};
  if (!bench.layouts().empty()) json["layouts"] = bench.layouts();
  if (options.ops || !options.table.empty()) {
    const std::vector<OpReport> ops = bench.profile();
    if (!options.table.empty()) write_table(options.table, ops);
    if (options.ops) add_ops(ops, bench.peak_flops(), json);
  }
  json["process_peak_bytes"] = peak_resident_bytes();
  return json;
}

// Runs the same steps on one thread and prints what both times imply for many threads.
void print_serial_share(const Config& config, const BenchStepOptions& options, const BenchTimes& times,
                        std::int64_t batch) {
  constexpr int kMany = 32;
  const BenchTimes alone = StepBench(config, batch, 1).measure(options.steps);
  const double serial = serial_share(alone.median_s, times.median_s, options.threads);
  fmt::print(
      "threads: {} on 1, {} on {}: {:.2f} times as fast; {:.1f} % of a step on one thread is serial, so that {} "
      "threads would be {:.1f} times as fast as one (Amdahl)\n",
      seconds_text(alone.median_s), seconds_text(times.median_s), options.threads, alone.median_s / times.median_s,
      100 * serial, kMany, amdahl_speedup(serial, kMany));
}

}  // namespace

int run_bench_step(const BenchStepOptions& options) {
  if (options.steps < 0) throw ConfigError("--steps must be at least 0");
  if (options.batch < 0) throw ConfigError("--batch must be at least 1");
  if (options.threads < 1) throw ConfigError("--threads must be at least 1");
  const Config config = load_config(options.config, options.sets);
  if (options.batch == 0 && config.batch.global == 0)
    throw ConfigError("batch.global = 0 (all samples of the data) is not a fixed size; give --batch");
  const std::int64_t batch = options.batch > 0 ? options.batch : config.batch.global / config.batch.accumulation;
  StepBench bench(config, batch, options.threads, Shape(std::span<const std::int64_t>(options.shape)));
  const BenchTimes times = bench.measure(options.steps);
  if (!options.json) {
    print_report(bench, options, times, batch);
    if (options.threads > 1 && bench.device().on_host() && bench.device().computes())
      print_serial_share(config, options, times, batch);
    return kExitOk;
  }
  fmt::print("{}\n", step_json(bench, config, options, times, batch).dump());
  return kExitOk;
}

}  // namespace echelon::cli
