#include "report/writers/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "report/wire_table.hpp"

namespace echelon::inline report {
namespace {

std::string range_text(const Spread& spread, const std::function<std::string(double)>& text) {
  if (!std::isfinite(spread.median)) return "-";
  if (spread.low == spread.high) return text(spread.median);
  return fmt::format("{} ({} to {})", text(spread.median), text(spread.low), text(spread.high));
}

// With one decimal, of a value in percent; no "-0.0".
std::string tenths(double percent) { return fmt::format("{:.1f}", std::fabs(percent) < 0.05 ? 0.0 : percent); }

// Three significant digits, zeros at the end too.
std::string amount_text(double amount) { return amount < 1 ? fmt::format("{:#.3g}", amount) : rate_text(amount); }

std::string figure_heading(const Evidence& evidence) {
  const std::string name = goal_metric_name(shown_metric(evidence));
  return evidence.has_goal() ? name : replaced(name, "_", " ");
}

std::string count_or_dash(double value) {
  return known_or_dash(value, count_text(static_cast<std::int64_t>(std::isfinite(value) ? value : 0)));
}

bool any(const Evidence& evidence, const std::function<bool(const Setting&)>& has) {
  return std::any_of(evidence.settings.begin(), evidence.settings.end(), has);
}

}  // namespace

double exposed_share(const ScalingRow& row) {
  const double step_s = row.time_split_s.training_s();
  return step_s > 0 ? row.time_split_s.exchange_s / step_s : kUnknown;
}

Table settings_table(const Evidence& evidence) {
  std::vector<std::string> header = {"ranks",     "hosts",    "what",
                                     "samples/s", "speed-up", "efficiency",
                                     "MB a step", "exposed",  figure_heading(evidence)};
  if (evidence.has_goal()) header.insert(header.end(), {"reached", "samples to it", "time to it"});
  const bool shaped = any(evidence, [](const Setting& s) { return !s.row.shaped.empty(); });
  if (shaped) header.insert(header.begin() + 3, "network");
  header.emplace_back("node-hours");
  if (evidence.cost.node_hour > 0) header.push_back(evidence.cost.currency);
  const bool stale = any(evidence, [](const Setting& s) { return std::isfinite(s.row.staleness_mean); });
  if (stale) header.insert(header.end(), {"oscillation", "staleness"});
  const bool dropped = any(evidence, [](const Setting& s) { return has_dropped(s.row); });
  if (dropped) header.emplace_back("dropped");
  Table table(header);
  for (const Setting& s : evidence.settings) {
    const double exposed = 100 * exposed_share(s.row);
    std::vector<std::string> cells = identity_of(s);
    if (shaped) cells.push_back(shaped_cell(s.row));
    cells.insert(
        cells.end(),
        {range_text(s.row.rate, rate_text), known_or_dash(s.row.speed_up, fmt::format("{:.2f}x", s.row.speed_up)),
         known_or_dash(s.row.efficiency, fmt::format("{:.0f} %", 100 * s.row.efficiency)),
         known_or_dash(s.row.wire_bytes_per_step, fmt::format("{:.3f}", s.row.wire_bytes_per_step / 1e6)),
         known_or_dash(exposed, fmt::format("{:.1f} %", exposed)),
         range_text(s.final_figure, [](double v) { return fmt::format("{:.4f}", v); })});
    if (evidence.has_goal())
      cells.insert(cells.end(), {fmt::format("{} of {}", s.reached, s.row.attempts), count_or_dash(s.samples.median),
                                 range_text(s.seconds, seconds_text)});
    const double hours = evidence.node_hours(s);
    cells.push_back(known_or_dash(hours, amount_text(hours)));
    if (evidence.cost.node_hour > 0) cells.push_back(known_or_dash(evidence.price(s), amount_text(evidence.price(s))));
    if (stale)
      cells.insert(cells.end(),
                   {known_or_dash(s.row.loss_oscillation, fmt::format("{:.3f}", s.row.loss_oscillation)),
                    known_or_dash(s.row.staleness_mean, fmt::format("{:.2f}, at most {:.0f}", s.row.staleness_mean,
                                                                    s.row.staleness_largest))});
    if (dropped) cells.push_back(dropped_text(s.row));
    table.row(std::move(cells));
  }
  return table;
}

const Setting& shown_setting(const Evidence& evidence, const StudyVerdict& verdict) {
  if (verdict.recommended >= 0) return evidence.settings[static_cast<std::size_t>(verdict.recommended)];
  return *std::max_element(evidence.settings.begin(), evidence.settings.end(), [](const Setting& a, const Setting& b) {
    return std::pair(a.ranks(), a.row.rate.median) < std::pair(b.ranks(), b.row.rate.median);
  });
}

std::vector<BudgetPart> shown_parts(const Evidence& evidence) {
  constexpr double kShown = 5e-4;
  std::vector<BudgetPart> parts;
  for (const BudgetPart& part : kBudgetParts)
    if (any(evidence, [&](const Setting& s) { return std::fabs(s.budget.*part.share) > kShown; }))
      parts.push_back(part);
  return parts;
}

std::string budget_text(const Evidence& evidence) {
  double steps = 0;
  for (const Setting& s : evidence.settings) steps = std::fmax(steps, s.row.warmup_steps);
  if (!(steps > 0)) return kBudgetText;
  return fmt::format("{} The first {} of each run are its warm-up: start-up in this table, no part of any rate.",
                     kBudgetText, counted(static_cast<std::int64_t>(steps) + 1, "step"));
}

Table budget_table(const Evidence& evidence) {
  std::vector<std::string> header = {"ranks", "hosts", "what"};
  const std::vector<BudgetPart> parts = shown_parts(evidence);
  for (const BudgetPart& part : parts) header.emplace_back(part.name);
  header.emplace_back("sum");
  Table table(header);
  for (const Setting& s : evidence.settings) {
    if (!s.budget.known()) continue;
    std::vector<std::string> cells = identity_of(s);
    double sum = 0;
    for (const BudgetPart& part : kBudgetParts) sum += 100 * (s.budget.*part.share);
    for (const BudgetPart& part : parts) cells.push_back(tenths(100 * (s.budget.*part.share)));
    cells.push_back(tenths(sum));
    table.row(std::move(cells));
  }
  return table;
}

namespace {

std::string wrapped(const std::string& text, std::size_t columns) {
  std::string out, line;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    if (!line.empty() && line.size() + 1 + word.size() > columns) {
      out += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    at = space + 1;
  }
  return out + line + "\n";
}

}  // namespace

std::string study_text(const Evidence& evidence, const StudyVerdict& verdict) {
  constexpr std::size_t kColumns = 100;
  std::string out = "Verdict\n";
  for (const std::string& line : sentences_of(verdict)) out += wrapped("  " + line, kColumns);
  for (const GoalLine& goal : verdict.goals)
    out += wrapped(fmt::format("  goal {}: {}", goal.met ? "met" : "MISSED", goal.text), kColumns);
  if (evidence.baseline < 0) return out;
  out += "\nWhat was run\n" + settings_table(evidence).text();
  const Table budget = budget_table(evidence);
  if (!budget.empty()) out += "\nLoss budget, percent\n" + budget.text();
  const Table compute = compute_table(evidence);
  if (!compute.empty()) out += "\nCompute and memory of a rank\n" + compute.text();
  return out;
}

std::string study_markdown(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source) {
  constexpr std::size_t kColumns = 118;
  std::string out = fmt::format("# {}\n\n## Verdict\n\n", source.name);
  for (const std::string& line : sentences_of(verdict)) out += wrapped("* " + line, kColumns);
  if (!verdict.goals.empty()) out += "\n";
  for (const GoalLine& goal : verdict.goals)
    out += wrapped(fmt::format("* goal **{}**: {}", goal.met ? "met" : "missed", goal.text), kColumns);
  if (evidence.baseline < 0) return out;
  out += "\n## What was run\n\n" + settings_table(evidence).markdown();
  const Table budget = budget_table(evidence);
  if (!budget.empty())
    out += "\n## Loss budget\n\n" + wrapped(budget_text(evidence), kColumns) + "\n" + budget.markdown();
  const Table compute = compute_table(evidence);
  if (!compute.empty())
    out += "\n## Compute and memory of a rank\n\n" + wrapped(kComputeText, kColumns) + "\n" + compute.markdown();
  if (const Table curves = evaluations_table(evidence); !curves.empty())
    out += "\n## Evaluations\n\n" + wrapped(kEvaluationsText, kColumns) + "\n" + curves.markdown();
  const Setting& shown = shown_setting(evidence, verdict);
  const WireBytes& bytes = shown.wire;
  if (const Table wire = wire_table(bytes); !wire.empty())
    out += fmt::format("\n## Bytes on the wire, MB a step: {}\n\n{}\n{}", name_of(shown),
                       wrapped(wire_text(bytes, shown.row), kColumns), wire.markdown());
  return out;
}

}  // namespace echelon::inline report
