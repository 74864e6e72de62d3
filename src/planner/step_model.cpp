// SPDX-License-Identifier: Apache-2.0
#include "planner/step_model.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "config/traits/codecs.hpp"
#include "exchange/entry.hpp"
#include "planner/description.hpp"
#include "report/figures_json.hpp"

namespace echelon::inline planner {
namespace {

// Reads the rows of all steps except the first, which includes the start-up.
std::vector<StepFigures> step_rows(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw DataError(fmt::format("{}: cannot be read, but a step is measured from its rows", path));
  std::vector<StepFigures> rows;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    try {
      const nlohmann::json row = nlohmann::json::parse(line);
      if (row.value("type", "") != "step") continue;
      StepFigures figures;
      take_figures(row, figures);
      rows.push_back(figures);
    } catch (const nlohmann::json::exception& error) {
      throw DataError(fmt::format("{}:{}: {}", path, number, error.what()));
    }
  }
  if (rows.size() > 1) rows.erase(rows.begin());
  return rows;
}

}  // namespace

StepModel StepModel::of_samples(double other) const {
  StepModel step = *this;
  const double factor = other / samples;
  step.samples = other;
  for (double* phase : {&step.data_s, &step.forward_s, &step.backward_s, &step.other_s}) *phase *= factor;
  return step;
}

StepModel described_step(const std::string& argument, double samples) {
  Description text(argument, "--step", "step");
  constexpr double kMost_ms = 1e7;
  StepModel step;
  step.source = "described: " + argument;
  const auto seconds = [&](const char* key, double otherwise) {
    return text.number(key, 1e3 * otherwise, 0, kMost_ms) / 1e3;
  };
  step.samples = text.number("samples", samples, 1, 1e9);
  const double rate = text.number("samples_per_s", 0, 1e-9, 1e12);
  if (rate == 0 && !(text.has("forward_ms") && text.has("backward_ms")))
    text.refuse("forward_ms", "expected forward_ms and backward_ms, or samples_per_s");
  const double whole = rate > 0 ? step.samples / rate : 0;
  step.data_s = seconds("data_ms", 0);
  step.forward_s = seconds("forward_ms", whole / 3);
  step.backward_s = seconds("backward_ms", whole * 2 / 3);
  step.optimiser_s = seconds("optimizer_ms", 0);
  step.other_s = seconds("other_ms", 0);
  step.overlap = text.number("overlap", 1, 0, 1);
  const double jitter = text.number("jitter", 0, 0, 3), spread = text.number("spread", 0, 0, 3);
  step.variation = Variation::lognormal(jitter, spread);
  step.codec.encode_bytes_per_s = 1e9 * text.number("encode_gb_per_s", 4.5, 1e-3, 1e6);
  step.codec.decode_bytes_per_s = 1e9 * text.number("decode_gb_per_s", 6, 1e-3, 1e6);
  text.refuse_others();
  if (step.forward_s + step.backward_s <= 0) text.refuse("forward_ms", "the step must take more than 0 ms");
  return step;
}

StepModel measured_step(const RunRecord& run) {
  const std::vector<StepFigures> rows = step_rows(run.folder + "/metrics.jsonl");
  StepModel step;
  step.source = fmt::format("measured: {}, {} on {}", run.folder,
                            counted(static_cast<std::int64_t>(rows.size()), "step"), counted(run.ranks, "rank"));
  if (rows.empty()) throw DataError(fmt::format("{}/metrics.jsonl: has no step", run.folder));
  std::vector<double> compute;
  const auto n = static_cast<double>(rows.size());
  for (const StepFigures& figures : rows) {
    const StepTimes& row = figures.time;
    step.data_s += row.data_wait_s / n;
    step.forward_s += row.forward_s / n;
    step.backward_s += row.backward_s / n;
    step.optimiser_s += row.optimiser_s / n;
    step.other_s += row.other_s() / n;
    compute.push_back(row.data_wait_s + row.forward_s + row.backward_s + row.optimiser_s + row.other_s());
  }
  if (step.total_s() <= 0) throw DataError(fmt::format("{}/metrics.jsonl: its steps take 0 s", run.folder));
  step.samples = run.batch_per_replica.empty() ? static_cast<double>(run.global_batch)
                                               : static_cast<double>(run.batch_per_replica.front());
  step.variation = Variation::measured(std::move(compute));
  step.measured = true;
  return step;
}

std::string coding_of(const ExchangeConfig& exchange) {
  return strategy_entry(exchange.strategy).always_codes ? exchange.strategy : exchange.codec;
}

std::optional<CodecSpeed> measured_codec(const RunRecord& run) {
  if (!run.coded || !(run.coded->bytes_before > 0) || !(run.coded->seconds > 0)) return {};
  if (run.config && strategy_entry(run.config->exchange.strategy).always_codes)
    return CodecSpeed{.encode_bytes_per_s = run.coded->bytes_before / run.coded->seconds};
  if (run.codec == kNoCodec.name) return {};
  // A rank decodes each value that it encodes once; if all ranks receive all messages, once per replica.
  const CodecTraits* traits = find_traits(kCodecs, run.codec);
  const CodecRoute route = run.config ? route_of(run.config->exchange) : traits ? traits->route : CodecRoute::any;
  const bool gathers = route == CodecRoute::gather;
  const double rate = run.coded->bytes_before * (gathers ? 1 + run.mesh.data : 2) / run.coded->seconds;
  return CodecSpeed{.encode_bytes_per_s = rate, .decode_bytes_per_s = rate};
}

double measured_period_s(const RunRecord& run) {
  return static_cast<double>(run.global_batch) / run.samples_per_s.median;
}

}  // namespace echelon::inline planner
