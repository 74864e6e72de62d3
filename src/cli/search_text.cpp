#include "cli/search_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.hpp"
#include "cli/study_ledger.hpp"
#include "config/goal.hpp"
#include "report/record.hpp"

namespace echelon::cli {
namespace {

constexpr std::size_t kShown = 15;

struct Ranked {
  std::size_t trial;
  double value;
};

// Finished trials, the best first.
std::vector<Ranked> ranked(const StudySearch& search) {
  std::vector<Ranked> all;
  for (std::size_t t = 0; t < search.trials().size(); ++t)
    if (std::isfinite(search.trials()[t].value)) all.push_back({t, search.trials()[t].value});
  std::stable_sort(all.begin(), all.end(), [](const Ranked& a, const Ranked& b) { return a.value < b.value; });
  return all;
}

Table trials_table(const StudySearch& search, const std::vector<StudyCell>& cells, const StudyPlan& study,
                   const GoalConfig& goal) {
  std::vector<std::string> header = {"place", "trial", goal_metric_name(goal.metric)};
  for (const SearchRange& range : search.ranges()) header.push_back(range.key);
  header.insert(header.end(), {"took", "folder"});
  Table table(header);
  const std::vector<Ranked> all = ranked(search);
  const double sign = goal.metric == GoalMetric::test_accuracy ? -1 : 1;
  for (std::size_t place = 0; place < std::min(all.size(), kShown); ++place) {
    const std::size_t t = all[place].trial;
    std::vector<std::string> row = {std::to_string(place + 1), std::to_string(t + 1),
                                    fmt::format("{:.4f}", sign * all[place].value)};
    for (std::size_t d = 0; d < search.ranges().size(); ++d)
      row.push_back(search.ranges()[d].value(search.trials()[t].point[d]));
    const std::string folder = folder_of(study, cells[t]);
    row.insert(row.end(), {seconds_text(read_cell(folder).seconds), folder});
    table.row(std::move(row));
  }
  return table;
}

// "learning_rate 71 %, momentum 12 %"
std::string mattered_text(const StudySearch& search) {
  const std::vector<double> effects = search.what_mattered();
  std::vector<std::size_t> order(effects.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return effects[a] > effects[b]; });
  std::string out;
  for (const std::size_t d : order)
    out += fmt::format("{}{} {:.0f} %", out.empty() ? "" : ", ", search.ranges()[d].key, 100 * effects[d]);
  return out.empty() ? "too few trials finished to tell" : out;
}

std::string summary(const StudySearch& search) {
  const auto finished = ranked(search).size();
  return fmt::format(
      "{} trials, {} finished. What mattered (share of the figure's variation that a key explains by "
      "itself): {}.",
      search.trials().size(), finished, mattered_text(search));
}

}  // namespace

double search_value(const GoalConfig& goal, const CellRecord& record) {
  if (record.state != CellState::finished || record.attempt.empty()) return std::nan("");
  const RunRecord run = read_run(record.attempt);
  const double figure = goal_figure(goal.metric, run.test_loss, run.test_accuracy);
  return goal.metric == GoalMetric::test_accuracy ? -figure : figure;
}

std::vector<StudyCell> replay_search(StudySearch& search, const StudyPlan& study, const GoalConfig& goal) {
  std::vector<StudyCell> cells;
  while (std::optional<StudyCell> cell = search.propose()) {
    const CellRecord record = read_cell(folder_of(study, *cell));
    if (!record.over()) break;
    cells.push_back(std::move(*cell));
    search.learn(search_value(goal, record));
  }
  return cells;
}

std::string search_text(const StudySearch& search, const std::vector<StudyCell>& cells, const StudyPlan& study,
                        const GoalConfig& goal) {
  return fmt::format("Best trials\n{}\n{}\n", trials_table(search, cells, study, goal).text(), summary(search));
}

std::string search_markdown(const StudySearch& search, const std::vector<StudyCell>& cells, const StudyPlan& study,
                            const GoalConfig& goal) {
  return fmt::format("# {}\n\n{}\n\n{}", study.name, summary(search),
                     trials_table(search, cells, study, goal).markdown());
}

}  // namespace echelon::cli
