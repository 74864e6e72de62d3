// SPDX-License-Identifier: Apache-2.0
#include "cli/study_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/atomic_file.hpp"
#include "base/text.hpp"
#include "cli/study_claim.hpp"
#include "cli/study_record.hpp"
#include "cli/study_verbs.hpp"
#include "report/scaling.hpp"

namespace echelon::cli {
namespace {

constexpr std::size_t kMostPrinted = 12;

struct Outcomes {
  std::map<std::string, std::vector<double>> values;  // [figure]
  int finished = 0, cells = 0;
};

// Key of a row: a number of ranks, an environment and a setting, by position in the file.
using Key = std::tuple<int, std::string, std::string>;

std::vector<std::pair<Key, Outcomes>> outcomes_of(const StudyPlan& study, const std::vector<StudyCell>& cells,
                                                  const std::vector<CellRecord>& records) {
  std::vector<std::pair<Key, Outcomes>> all;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (records[i].outcome().empty()) continue;
    const CellFigures figures = read_figures(folder_of(study, cells[i]));
    for (const std::string& environment : cells[i].environments) {
      const Key key{cells[i].ranks, environment, cells[i].text};
      auto at = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.first == key; });
      if (at == all.end()) at = all.insert(all.end(), {key, {}});
      ++at->second.cells;
      at->second.finished += records[i].state == CellState::finished ? 1 : 0;
      for (const auto& [name, value] : figures) at->second.values[name].push_back(value);
    }
  }
  return all;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

bool has_figures(const StudyPlan& study) {
  const auto proposes = [](const StudyAxis& axis) { return axis.key == "study.search"; };
  return (study.verb != "train" && study.verb != "supervise") ||
         std::any_of(study.axes.begin(), study.axes.end(), proposes);
}

std::string figures_text(const StudyPlan& study, const std::vector<StudyCell>& cells,
                         const std::vector<CellRecord>& records, std::size_t most) {
  Table table({"ranks", "environment", "setting", "finished", "figure", "median", "lowest", "highest"});
  const auto number = [](double value) { return std::isnan(value) ? "-" : fmt::format("{:.6g}", value); };
  for (const auto& [key, outcomes] : outcomes_of(study, cells, records)) {
    std::size_t shown = 0;
    const std::string finished = fmt::format("{} of {}", outcomes.finished, outcomes.cells);
    const auto row = [&](const std::string& figure, const Spread& values) {
      const bool first = shown++ == 0;
      table.row({first ? std::to_string(std::get<0>(key)) : "", first ? std::get<1>(key) : "",
                 first ? std::get<2>(key) : "", first ? finished : "", figure, number(values.median),
                 number(values.low), number(values.high)});
    };
    for (const auto& [figure, values] : outcomes.values)
      if (shown < most) row(figure, range_of(values));
    if (outcomes.values.empty()) row("", {});
    if (outcomes.values.size() > most) row(fmt::format("and {} more", outcomes.values.size() - most), {});
  }
  return table.text();
}

std::string figures_csv(const StudyPlan& study, const std::vector<StudyCell>& cells,
                        const std::vector<CellRecord>& records) {
  std::string csv = "ranks,setting,environment,round,seed,outcome,code,figure,value\n";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (records[i].outcome().empty()) continue;
    const CellFigures figures = read_figures(folder_of(study, cells[i]));
    for (const std::string& environment : cells[i].environments) {
      const std::string of_cell =
          fmt::format("{},{},{},{},{},{},{}", cells[i].ranks, quoted(cells[i].text), quoted(environment),
                      cells[i].repeat, cells[i].seed, records[i].outcome(), records[i].exit_code);
      if (figures.empty()) csv += of_cell + ",,\n";
      for (const auto& [figure, value] : figures)
        csv += fmt::format("{},{},{}\n", of_cell, quoted(figure), std::isnan(value) ? "" : fmt::format("{}", value));
    }
  }
  return csv;
}

void print_figures(const StudyPlan& study) {
  const std::vector<StudyCell> cells = cells_of(study);
  const std::vector<CellRecord> records = cell_records(study, cells);
  fmt::print("\n{}", figures_text(study, cells, records, kMostPrinted));
  make_folders(study.folder);
  const std::string page = study.folder + "/study.md", csv = study.folder + "/study.csv";
  const std::string what = study.verb == "train" ? "searches" : fmt::format("`echelon {}`", study.verb);
  write_file_whole(page,
                   fmt::format("# {}\n\nFigures of {}, over the rounds; every value is in `study.csv`.\n\n```\n{}```\n",
                               study.name, what, figures_text(study, cells, records, cells.size() * 1000)));
  write_file_whole(csv, figures_csv(study, cells, records));
  fmt::print("\nwritten:\n  {}\n  {}\n", page, csv);
  if (const std::string claim = write_claim(study, cells); !claim.empty()) fmt::print("  {}\n", claim);
}

}  // namespace echelon::cli
