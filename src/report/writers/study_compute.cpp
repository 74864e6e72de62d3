// SPDX-License-Identifier: Apache-2.0
// Tables of the computation of a rank, compared with the peak of its device, and of its memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "report/writers/study.hpp"
#include "report/writers/writers.hpp"

namespace echelon::inline report {
namespace {

std::string rate_cell(double rate, double peak) {
  if (!std::isfinite(rate)) return "-";
  const std::string text = rate_text(rate / 1e9);
  return peak > 0 ? fmt::format("{} ({:.0f} %)", text, 100 * rate / peak) : text;
}

std::string memory_cell(const std::vector<double>& mib) {
  const double most = largest(mib);
  return known_or_dash(most, fmt::format("{:.0f}", most));
}

}  // namespace

RankCompute compute_of(const ScalingRow& row) {
  const double peak = largest(row.card_peak), mean = largest(row.card_mean);
  const double flops = (row.forward_flops + row.backward_flops) * static_cast<double>(row.global_batch);
  return {
      .forward_flops_per_s = row.flops_per_s(row.forward_flops, row.time_split_s.forward_s),
      .backward_flops_per_s = row.flops_per_s(row.backward_flops, row.time_split_s.backward_s),
      .flops_per_weight_and_step = row.parameters > 0 ? flops / static_cast<double>(row.parameters) : kUnknown,
      .card_peak_over_mean = peak > 0 && mean > 0 ? peak / mean : kUnknown,
  };
}

std::string known_or_dash(double value, std::string text) { return std::isfinite(value) ? std::move(text) : "-"; }

std::string what_of(const Setting& s) { return s.label.empty() ? s.row.strategy : s.label; }

namespace {

bool has_shaped(const Evidence& evidence) {
  return std::any_of(evidence.settings.begin(), evidence.settings.end(),
                     [](const Setting& s) { return !s.row.shaped.empty(); });
}

// One rank sends nothing. An environment has its own network, which the page names below its answer.
std::string network_cell(const Evidence& evidence, const Setting& s) {
  if (s.ranks() == 1) return "-";
  const bool named = evidence.environments.size() > 1 && !s.row.shaped.empty();
  return named ? "shaped" : shaped_cell(s.row);
}

}  // namespace

std::vector<std::string> identity_header(const Evidence& evidence) {
  std::vector<std::string> header = {"what"};
  if (evidence.environments.size() > 1) header.emplace_back("environment");
  if (has_shaped(evidence)) header.emplace_back("network");
  header.insert(header.end(), {"ranks", "hosts"});
  return header;
}

std::vector<std::string> identity_of(const Evidence& evidence, const Setting& s) {
  std::vector<std::string> cells = {what_of(s)};
  if (evidence.environments.size() > 1) cells.push_back(s.environment);
  if (has_shaped(evidence)) cells.push_back(network_cell(evidence, s));
  cells.push_back(s.row.servers > 0 ? fmt::format("{} + {}", s.row.ranks, s.row.servers) : std::to_string(s.ranks()));
  cells.push_back(s.finished() > 0 ? std::to_string(s.row.hosts) : "-");
  return cells;
}

Table compute_table(const Evidence& evidence) {
  std::vector<std::string> header = identity_header(evidence);
  header.insert(header.end(), {"forward GFLOP/s", "backward GFLOP/s", "peak GFLOP/s", "FLOP per weight and step",
                               "exchange hidden", "card, peak over mean", "host MiB", "device MiB"});
  Table table(header);
  for (const Setting& s : evidence.settings) {
    const ScalingRow& row = s.row;
    const double hidden = row.hidden_share();
    const RankCompute compute = compute_of(row);
    std::vector<std::string> cells = identity_of(evidence, s);
    cells.insert(cells.end(),
                 {rate_cell(compute.forward_flops_per_s, row.peak_flops),
                  rate_cell(compute.backward_flops_per_s, row.peak_flops),
                  known_or_dash(row.peak_flops, rate_text(row.peak_flops / 1e9)),
                  known_or_dash(compute.flops_per_weight_and_step, rate_text(compute.flops_per_weight_and_step)),
                  known_or_dash(hidden, fmt::format("{:.0f} %", 100 * hidden)),
                  known_or_dash(compute.card_peak_over_mean, fmt::format("{:.1f}", compute.card_peak_over_mean)),
                  memory_cell(row.peak_rss_mb), memory_cell(row.device_peak_mb)});
    table.row(std::move(cells));
  }
  return table;
}

}  // namespace echelon::inline report
