// What a rank computes, how far that is from its device's peak, and what memory it takes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "report/writers/study.hpp"

namespace echelon::inline report {
namespace {

std::string rate_cell(double rate, double peak) {
  if (!std::isfinite(rate)) return "-";
  const std::string text = rate_text(rate / 1e9);
  return peak > 0 ? fmt::format("{} ({:.0f} %)", text, 100 * rate / peak) : text;
}

// Of the card with the highest peak: a server's, where there are servers.
std::string card_cell(const ScalingRow& row) {
  const double peak = largest(row.card_peak), mean = largest(row.card_mean);
  return peak > 0 && mean > 0 ? fmt::format("{:.1f}", peak / mean) : "-";
}

std::string memory_cell(const std::vector<double>& mib) {
  const double most = largest(mib);
  return known_or_dash(most, fmt::format("{:.0f}", most));
}

}  // namespace

std::string known_or_dash(double value, std::string text) { return std::isfinite(value) ? std::move(text) : "-"; }

std::vector<std::string> identity_of(const Setting& s) {
  return {fmt::format("{}{}", s.row.ranks, s.row.servers > 0 ? fmt::format(" + {}", s.row.servers) : ""),
          std::to_string(s.row.hosts), s.label.empty() ? s.row.strategy : s.label};
}

Table compute_table(const Evidence& evidence) {
  Table table({"ranks", "hosts", "what", "forward GFLOP/s", "backward GFLOP/s", "peak GFLOP/s",
               "FLOP a weight and step", "exchange hidden", "card, peak over mean", "host MiB", "device MiB"});
  for (const Setting& s : evidence.settings) {
    const ScalingRow& row = s.row;
    const double flops = row.forward_flops + row.backward_flops, hidden = row.hidden_share();
    const double intensity = row.parameters > 0
                                 ? flops * static_cast<double>(row.global_batch) / static_cast<double>(row.parameters)
                                 : kUnknown;
    std::vector<std::string> cells = identity_of(s);
    cells.insert(
        cells.end(),
        {rate_cell(row.flops_per_s(row.forward_flops, row.time_split_s.forward_s), row.peak_flops),
         rate_cell(row.flops_per_s(row.backward_flops, row.time_split_s.backward_s), row.peak_flops),
         known_or_dash(row.peak_flops, rate_text(row.peak_flops / 1e9)), known_or_dash(intensity, rate_text(intensity)),
         known_or_dash(hidden, fmt::format("{:.0f} %", 100 * hidden)), card_cell(row), memory_cell(row.peak_rss_mb),
         memory_cell(row.device_peak_mb)});
    table.row(std::move(cells));
  }
  return table;
}

}  // namespace echelon::inline report
