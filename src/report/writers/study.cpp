// SPDX-License-Identifier: Apache-2.0
#include "report/writers/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "report/verdict_words.hpp"

namespace echelon::inline report {
namespace {

std::string range_text(const Spread& spread, const std::function<std::string(double)>& text) {
  if (!std::isfinite(spread.median)) return "-";
  if (spread.low == spread.high) return text(spread.median);
  return fmt::format("{} ({} to {})", text(spread.median), text(spread.low), text(spread.high));
}

// A percentage with one decimal, never "-0.0".
std::string tenths(double percent) { return fmt::format("{:.1f}", std::fabs(percent) < 0.05 ? 0.0 : percent); }

// Three significant digits, with trailing zeros.
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

// "2 of 5, 3 diverged".
std::string outcome_cell(const Setting& s, int count) {
  std::string text = fmt::format("{} of {}", count, s.tried());
  if (s.diverged > 0) text += fmt::format(", {} diverged", s.diverged);
  if (s.failed > 0) text += fmt::format(", {} failed", s.failed);
  return text;
}

}  // namespace

double exposed_share(const ScalingRow& row) {
  const double step_s = row.time_split_s.training_s();
  return step_s > 0 ? row.time_split_s.exchange_s / step_s : kUnknown;
}

std::string gain_cell(const Effect& effect) {
  if (effect.pairs == 0 || !std::isfinite(effect.value)) return "-";
  const bool fine = !(effect.value >= 1.995);
  const auto text = [&](double value) {
    return effect.ratio ? fmt::format("{:.{}f}", value, fine ? 2 : 1) : fmt::format("{:+.3g}", value);
  };
  const std::string value = text(effect.value) + (effect.ratio ? "x" : "");
  if (!std::isfinite(effect.low)) return value;
  return fmt::format("{} ({} to {})", value, text(effect.low), text(effect.high));
}

HeadlineParts headline_parts(const std::string& headline) {
  const std::size_t end = headline.find(". ");
  if (end == std::string::npos) return {headline, ""};
  return {headline.substr(0, end + 1), headline.substr(end + 2)};
}

std::vector<std::string> study_facts(const Evidence& evidence, const ReportSource& source) {
  std::int64_t runs = 0, repetitions = 0;
  for (const Setting& s : evidence.settings) {
    runs += s.tried();
    repetitions = std::max<std::int64_t>(repetitions, s.tried());
  }
  std::vector<std::string> facts;
  if (evidence.has_goal())
    facts.push_back(fmt::format("goal: {} {:.4g}", replaced(goal_metric_name(evidence.goal.metric), "_", " "),
                                evidence.goal.target));
  facts.push_back(fmt::format("{}, {}, {}", counted(std::ssize(evidence.settings), "setting"),
                              counted(repetitions, "repetition"), counted(runs, "run")));
  facts.push_back(source.date + " UTC");
  return facts;
}

Table wants_table(const Evidence& evidence, const StudyVerdict& verdict) {
  Table table({"if you want", "then", "value", "gain over one worker", "tied with"});
  const auto setting = [&](int index) { return said(evidence.settings[static_cast<std::size_t>(index)]); };
  for (const GoalRow& row : verdict.rows) {
    const std::string where = verdict.environments.size() > 1 ? row.environment + ": " : "";
    const bool named = row.setting >= 0;
    std::vector<const Setting*> ties;
    for (const int tie : row.ties) ties.push_back(&evidence.settings[static_cast<std::size_t>(tie)]);
    // Without a winner, the sentence continues with the reason.
    const std::string reason = row.text.starts_with(row.want + ": ") ? row.text.substr(row.want.size() + 2) : row.text;
    table.row({where + row.want, named ? setting(row.setting) : reason, row.value.empty() ? "-" : row.value,
               gain_cell(row.effect), ties.empty() ? "-" : said(ties)});
  }
  return table;
}

std::vector<std::string> faster_lines(const StudyVerdict& verdict) {
  std::vector<std::string> lines;
  for (const EnvironmentVerdict& e : verdict.environments)
    for (const PricedGain& gain : e.faster_but_worse)
      lines.push_back((verdict.environments.size() > 1 ? e.environment + ": " : "") + gain.text);
  return lines;
}

Table settings_table(const Evidence& evidence) {
  std::vector<std::string> header = identity_header(evidence);
  header.insert(header.end(),
                {"samples/s", "speed-up", "efficiency", "MB a step", "exposed", figure_heading(evidence)});
  const bool goal = evidence.has_goal();
  const bool unfinished = any(evidence, [](const Setting& s) { return s.finished() < s.tried(); });
  if (goal) header.insert(header.end(), {"reached", "samples to goal", "time to goal"});
  if (!goal && unfinished) header.emplace_back("finished");
  header.emplace_back("node-hours");
  if (has_price(evidence.cost)) header.push_back(evidence.cost.currency);
  const bool stale = any(evidence, [](const Setting& s) { return std::isfinite(s.row.staleness_mean); });
  if (stale) header.insert(header.end(), {"oscillation", "staleness"});
  const bool dropped = any(evidence, [](const Setting& s) { return has_dropped(s.row); });
  if (dropped) header.emplace_back("dropped");
  Table table(header);
  for (const Setting& s : evidence.settings) {
    const double exposed = 100 * exposed_share(s.row);
    std::vector<std::string> cells = identity_of(evidence, s);
    cells.insert(
        cells.end(),
        {range_text(s.row.rate, rate_text), known_or_dash(s.row.speed_up, fmt::format("{:.2f}x", s.row.speed_up)),
         known_or_dash(s.row.efficiency, fmt::format("{:.0f} %", 100 * s.row.efficiency)),
         known_or_dash(s.row.wire_bytes_per_step, fmt::format("{:.3f}", s.row.wire_bytes_per_step / 1e6)),
         known_or_dash(exposed, fmt::format("{:.1f} %", exposed)),
         range_text(s.final_figure, [](double v) { return fmt::format("{:.4f}", v); })});
    if (goal)
      cells.insert(cells.end(),
                   {outcome_cell(s, s.reached), count_or_dash(s.samples.median), range_text(s.seconds, seconds_text)});
    if (!goal && unfinished) cells.push_back(outcome_cell(s, s.finished()));
    const double hours = evidence.node_hours(s);
    cells.push_back(known_or_dash(hours, amount_text(hours)));
    if (has_price(evidence.cost)) cells.push_back(known_or_dash(evidence.price(s), amount_text(evidence.price(s))));
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
  const Setting* shown = &evidence.best_single();
  for (const Setting& s : evidence.settings)
    if (s.finished() > 0 && std::pair(s.ranks(), s.row.rate.median) > std::pair(shown->ranks(), shown->row.rate.median))
      shown = &s;
  return *shown;
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
  return fmt::format(
      "{} The first {} of each run are its warm-up, which counts as start-up in this table and is part of no rate.",
      kBudgetText, counted(static_cast<std::int64_t>(steps) + 1, "step"));
}

Table budget_table(const Evidence& evidence) {
  std::vector<std::string> header = identity_header(evidence);
  const std::vector<BudgetPart> parts = shown_parts(evidence);
  for (const BudgetPart& part : parts) header.emplace_back(part.name);
  header.emplace_back("sum");
  Table table(header);
  for (const Setting& s : evidence.settings) {
    if (!s.budget.known()) continue;
    std::vector<std::string> cells = identity_of(evidence, s);
    double sum = 0;
    for (const BudgetPart& part : kBudgetParts) sum += 100 * (s.budget.*part.share);
    for (const BudgetPart& part : parts) cells.push_back(tenths(100 * (s.budget.*part.share)));
    cells.push_back(tenths(sum));
    table.row(std::move(cells));
  }
  return table;
}

}  // namespace echelon::inline report
