// SPDX-License-Identifier: Apache-2.0
#include "study/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "study/search/gaussian_process.hpp"

namespace echelon::inline study {
namespace {

constexpr std::size_t kFewest = 4;  // finished trials needed to tell which ranges mattered

std::string path_in(const StudyPlan& study) { return study.folder + "/trials.json"; }

// Points mean the same values as long as this text is the same: the ranges and, for a grid, their order.
std::string meaning_of(const StudyPlan& study, const std::vector<SearchRange>& ranges) {
  std::string text = study.search == SearchMethod::grid ? fmt::format("grid of {}", study.grid_steps) : "";
  for (const SearchRange& range : ranges)
    text += fmt::format("; {} {} {} {:d} {:d} {}", range.key, range.low, range.high, range.logarithmic, range.whole,
                        fmt::join(range.choices, ","));
  return hex64(checksum64(text));
}

}  // namespace

std::vector<SearchRange> ranges_of(const StudyPlan& study) {
  std::vector<SearchRange> ranges = study.ranges;
  for (const StudyAxis& axis : study.axes) ranges.push_back({.key = axis.key, .choices = axis.values});
  return ranges;
}

Proposer proposer_of(const StudyPlan& study) {
  return {*study.search, ranges_of(study), study.seed, static_cast<int>(study.grid_steps)};
}

TrialRungs trial_rungs(const StudyPlan& study, const CellRecord& record) {
  TrialRungs trial;
  const double sign = study.maximises() ? -1 : 1;
  for (const std::int64_t epochs : study.rungs) {
    const auto at = std::find_if(record.rungs.begin(), record.rungs.end(),
                                 [&](const RungFigure& figure) { return figure.epochs >= epochs; });
    if (at == record.rungs.end()) break;
    trial.figures.push_back(sign * at->figure);
  }
  const bool ended = record.over() && record.state != CellState::stopped;
  if (ended && trial.figures.size() < study.rungs.size()) {
    if (record.state != CellState::finished || record.rungs.empty())
      trial.figures.push_back(std::nan(""));
    else  // the trial finished when the run was shorter
      trial.figures.resize(study.rungs.size(), sign * record.rungs.back().figure);
  }
  return trial;
}

StudySearch::StudySearch(const StudyPlan& study) : study_(study), proposer_(proposer_of(study)) { read(); }

void StudySearch::add(Point point) {
  std::string text;
  std::vector<std::string> sets;
  for (std::size_t d = 0; d < ranges().size(); ++d) {
    const std::string value = ranges()[d].value(point[d]);
    const std::string& key = ranges()[d].key;
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key.substr(key.rfind('.') + 1), value);
    sets.push_back(key + "=" + value);
  }
  cells_.push_back(make_cell(study_, {.text = text, .sets = sets}, static_cast<int>(study_.ranks.back()), 1));
  points_.push_back(std::move(point));
}

void StudySearch::read() {
  const std::string path = path_in(study_);
  if (!std::filesystem::exists(path)) return;
  try {
    const nlohmann::json from = nlohmann::json::parse(read_file_whole(path));
    if (from.at("of") != meaning_of(study_, ranges())) return;
    const std::vector<Point> points = from.at("points");
    for (std::size_t t = points_.size(); t < std::min(points.size(), static_cast<std::size_t>(study_.trials)); ++t) {
      if (points[t].size() != ranges().size())
        throw DataError(fmt::format("{}: trial {} has {} coordinates", path, t + 1, points[t].size()));
      add(points[t]);
    }
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: {}; remove the file to begin the search again", path, error.what()));
  }
}

bool StudySearch::propose(const std::vector<CellRecord>& records) {
  if (static_cast<std::int64_t>(points_.size()) >= study_.trials) return false;
  add(*proposer_.next(trials(records)));
  const nlohmann::ordered_json object = {{"of", meaning_of(study_, ranges())}, {"points", points_}};
  make_folders(study_.folder);
  write_file_whole(path_in(study_), object.dump() + "\n");
  return true;
}

std::vector<Trial> StudySearch::trials(const std::vector<CellRecord>& records) const {
  std::vector<Trial> all;
  for (std::size_t t = 0; t < points_.size(); ++t) {
    const std::vector<double> figures = trial_rungs(study_, records[t]).figures;
    all.push_back({points_[t], figures.empty() ? std::nan("") : figures.front(), figures.empty()});
  }
  return all;
}

std::vector<double> StudySearch::what_mattered(const std::vector<CellRecord>& records) const {
  std::vector<Trial> known = trials(records);
  std::erase_if(known, [](const Trial& trial) { return trial.pending; });
  const auto finished = static_cast<std::size_t>(
      std::count_if(known.begin(), known.end(), [](const Trial& trial) { return std::isfinite(trial.value); }));
  if (finished < kFewest) return {};
  std::vector<Point> points;
  for (const Trial& trial : known) points.push_back(trial.point);
  GaussianProcess process;
  process.fit(points, known_values(known));
  return process.main_effects();
}

}  // namespace echelon::inline study
