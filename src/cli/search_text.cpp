// SPDX-License-Identifier: Apache-2.0
#include "cli/search_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/text.hpp"
#include "config/goal.hpp"

namespace echelon::cli {
namespace {

constexpr std::size_t kShown = 15;

struct Ranked {
  std::size_t trial;
  std::size_t rungs;  // rungs that it completed with a figure
  double value;       // figure of the last of them, to be minimised
};

// Ranks a trial; none without a figure.
std::optional<Ranked> ranked_trial(const StudyPlan& study, const std::vector<CellRecord>& records, std::size_t trial) {
  std::vector<double> figures = trial_rungs(study, records[trial]).figures;
  while (!figures.empty() && !std::isfinite(figures.back())) figures.pop_back();
  if (figures.empty()) return {};
  return Ranked{trial, figures.size(), figures.back()};
}

double shown(const StudyPlan& study, double value) { return study.maximises() ? -value : value; }

// Ranks the trials that have a figure: longest trained first, and among equals the best first.
std::vector<Ranked> ranked(const StudyPlan& study, const std::vector<CellRecord>& records) {
  std::vector<Ranked> all;
  for (std::size_t t = 0; t < records.size(); ++t)
    if (const std::optional<Ranked> trial = ranked_trial(study, records, t)) all.push_back(*trial);
  std::stable_sort(all.begin(), all.end(), [](const Ranked& a, const Ranked& b) {
    return a.rungs != b.rungs ? a.rungs > b.rungs : a.value < b.value;
  });
  return all;
}

Table trials_table(const StudySearch& search, const std::vector<CellRecord>& records, const StudyPlan& study) {
  std::vector<std::string> header = {"place", "trial", goal_metric_name(study.goal.metric)};
  if (study.halving) header.insert(header.end(), {"epochs", "state"});
  for (const SearchRange& range : search.ranges()) header.push_back(range.key);
  header.insert(header.end(), {"took", "folder"});
  Table table(header);
  const std::vector<Ranked> all = ranked(study, records);
  for (std::size_t place = 0; place < std::min(all.size(), kShown); ++place) {
    const auto& [t, rungs, value] = all[place];
    std::vector<std::string> row = {std::to_string(place + 1), std::to_string(t + 1),
                                    fmt::format("{:.4f}", shown(study, value))};
    if (study.halving) row.insert(row.end(), {std::to_string(study.rungs[rungs - 1]), name_of(records[t].state)});
    for (std::size_t d = 0; d < search.ranges().size(); ++d) row.push_back(search.value(t, d));
    row.insert(row.end(), {seconds_text(records[t].seconds), folder_of(study, search.cells()[t])});
    table.row(std::move(row));
  }
  return table;
}

// "learning_rate 71 %, momentum 12 %"
std::string mattered_text(const StudySearch& search, const std::vector<CellRecord>& records) {
  const std::vector<double> effects = search.what_mattered(records);
  std::vector<std::size_t> order(effects.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return effects[a] > effects[b]; });
  std::string out;
  for (const std::size_t d : order)
    out += fmt::format("{}{} {:.0f} %", out.empty() ? "" : ", ", search.ranges()[d].key, 100 * effects[d]);
  return out.empty() ? "too few trials finished to tell" : out;
}

// "; stopped early: 18 after 2 epochs, 6 after 6; 66 of 486 epochs trained"
std::string rungs_text(const StudyPlan& study, const std::vector<CellRecord>& records) {
  if (!study.halving) return {};
  std::string stopped;
  std::int64_t trained = 0;
  for (const std::int64_t epochs : study.rungs) {
    const auto ended = std::count_if(records.begin(), records.end(), [&](const CellRecord& record) {
      return !record.rungs.empty() && record.rungs.back().epochs == epochs;
    });
    trained += ended * epochs;
    if (ended > 0 && epochs < study.rungs.back())
      stopped +=
          fmt::format("{} {} after {}", stopped.empty() ? "; stopped early:" : ",", ended, counted(epochs, "epoch"));
  }
  return stopped + fmt::format("; {} epochs trained, {} without halving", trained,
                               static_cast<std::int64_t>(records.size()) * study.rungs.back());
}

std::string summary(const StudySearch& search, const std::vector<CellRecord>& records, const StudyPlan& study) {
  const auto finished = std::count_if(records.begin(), records.end(),
                                      [](const CellRecord& record) { return record.state == CellState::finished; });
  return fmt::format(
      "{} trials, {} finished{}. What mattered (share of the figure's variation{} that a key explains by itself): {}.",
      records.size(), finished, rungs_text(study, records),
      study.halving ? fmt::format(" after {}", counted(study.rungs.front(), "epoch")) : "",
      mattered_text(search, records));
}

}  // namespace

std::string search_text(const StudySearch& search, const std::vector<CellRecord>& records, const StudyPlan& study) {
  return fmt::format("Best trials\n{}\n{}\n", trials_table(search, records, study).text(),
                     summary(search, records, study));
}

std::string search_markdown(const StudySearch& search, const std::vector<CellRecord>& records, const StudyPlan& study) {
  return fmt::format("# {}\n\n{}\n\n{}", study.name, summary(search, records, study),
                     trials_table(search, records, study).markdown());
}

std::string search_csv(const StudySearch& search, const std::vector<CellRecord>& records, const StudyPlan& study) {
  std::vector<std::string> header = {"trial", goal_metric_name(study.goal.metric), "epochs", "state", "seconds"};
  for (const SearchRange& range : search.ranges()) header.push_back(range.key);
  header.emplace_back("folder");
  Table table(header);
  for (std::size_t t = 0; t < records.size(); ++t) {
    const std::optional<Ranked> trial = ranked_trial(study, records, t);
    std::vector<std::string> row = {std::to_string(t + 1),
                                    trial ? fmt::format("{:.9g}", shown(study, trial->value)) : "",
                                    trial ? std::to_string(study.rungs[trial->rungs - 1]) : "",
                                    name_of(records[t].state), fmt::format("{:.3f}", records[t].seconds)};
    for (std::size_t d = 0; d < search.ranges().size(); ++d) row.push_back(search.value(t, d));
    row.push_back(folder_of(study, search.cells()[t]));
    table.row(std::move(row));
  }
  return table.csv();
}

}  // namespace echelon::cli
