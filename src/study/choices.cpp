// SPDX-License-Identifier: Apache-2.0
// The settings of a study, its cells, and the order in which they are run.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/hash_rng.hpp"
#include "study/equal_settings.hpp"
#include "study/study.hpp"

namespace echelon::inline study {
namespace {

// Settings and environments that are the same run on this number of ranks.
struct SharedCell {
  int ranks = 1;
  StudySetting setting;
  StudyEnvironment environment;
  std::vector<std::string> environments, asked;
};

std::vector<std::string> names_of(const std::vector<StudyEnvironment>& all) {
  std::vector<std::string> names;
  for (const StudyEnvironment& one : all) names.push_back(one.name);
  return names;
}

struct Askers {
  std::vector<const StudyChoice*> settings = {};  // each once, in the order of the file
  std::vector<StudyEnvironment> environments = {};
  bool split = false;
};

void add_asker(Askers& askers, const StudyChoice& setting, const StudyEnvironment& environment) {
  if (std::find(askers.settings.begin(), askers.settings.end(), &setting) == askers.settings.end())
    askers.settings.push_back(&setting);
  const std::vector<std::string> names = names_of(askers.environments);
  if (std::find(names.begin(), names.end(), environment.name) == names.end())
    askers.environments.push_back(environment);
}

// The cells of one size, in the order of the first setting and environment that needs each.
std::vector<SharedCell> cells_of_size(const StudyPlan& study, const std::vector<StudyChoice>& settings, int ranks) {
  std::vector<StudyEnvironment> environments = study.environments;
  if (environments.empty()) environments.emplace_back();
  std::vector<Askers> all;
  std::map<std::string, std::size_t> by_effect;
  for (const StudyEnvironment& environment : environments)
    for (const StudyChoice& setting : settings) {
      const StudyCell cell =
          make_cell(study, {.text = setting.text(), .sets = setting.sets, .file = setting.file}, ranks, 1, environment);
      const auto [at, is_new] = by_effect.emplace(effect_of(cell), all.size());
      if (is_new) all.push_back({.split = is_split_on_one_rank(cell)});
      add_asker(all[at->second], setting, environment);
    }
  std::vector<SharedCell> cells;
  for (const Askers& askers : all) {
    const StudyChoice& first = *askers.settings.front();
    SharedCell cell{.ranks = ranks,
                    .setting = {.text = first.text(), .sets = first.sets, .file = first.file},
                    .environment = askers.environments.front(),
                    .environments = names_of(askers.environments),
                    .asked = {}};
    if (askers.settings.size() > 1 || askers.split) {
      for (const StudyChoice* setting : askers.settings) cell.asked.push_back(setting->text());
      cell.setting.text = common_name(askers.settings, ranks, study, askers.split);
      const auto same = [&](const SharedCell& other) {
        const auto& names = other.environments;
        return other.setting.text == cell.setting.text &&
               std::find_first_of(names.begin(), names.end(), cell.environments.begin(), cell.environments.end()) !=
                   names.end();
      };
      if (std::any_of(cells.begin(), cells.end(), same))
        cell.setting.text = fmt::format("{}", fmt::join(cell.asked, " / "));
    }
    cells.push_back(std::move(cell));
  }
  return cells;
}

}  // namespace

std::string StudyChoice::text() const {
  std::string text;
  for (const std::string& word : words)
    if (!word.empty()) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::vector<StudyChoice> study_choices(const StudyPlan& study) {
  std::vector<StudyChoice> all;
  for (const StudyVariant& variant : study.variants) all.push_back({{variant.name}, variant.sets, variant.file});
  if (all.empty()) all.push_back({{""}, {}, ""});
  const bool proposers = std::any_of(study.axes.begin(), study.axes.end(),
                                     [](const StudyAxis& axis) { return axis.key == "study.search"; });
  for (const StudyAxis& axis : study.axes) {
    if (proposers && axis.key != "study.search") continue;  // each search has its own choices
    std::vector<StudyChoice> wider;
    for (const StudyChoice& choice : all)
      for (const std::string& value : axis.values) {
        StudyChoice next = choice;
        next.words.push_back(axis.key.starts_with("--") ? fmt::format("{} {}", axis.key, value)
                                                        : fmt::format("{} = {}", axis.key, value));
        next.sets.push_back(axis.key + "=" + value);
        wider.push_back(std::move(next));
      }
    all = std::move(wider);
  }
  return all;
}

std::vector<StudyCell> cells_of(const StudyPlan& study) {
  const std::vector<StudyChoice> settings = study_choices(study);
  std::vector<SharedCell> shared;
  for (const std::int64_t ranks : study.ranks)
    for (SharedCell& cell : cells_of_size(study, settings, static_cast<int>(ranks))) shared.push_back(std::move(cell));
  std::vector<StudyCell> cells;
  for (int repeat = 1; repeat <= static_cast<int>(study.repeats); ++repeat)
    for (std::size_t i = 0; i < shared.size(); ++i) {
      cells.push_back(make_cell(study, shared[i].setting, shared[i].ranks, repeat, shared[i].environment));
      cells.back().environments = shared[i].environments;
      cells.back().asked = shared[i].asked;
      cells.back().control = i == 0 && study.repeats > 1;
    }
  return cells;
}

std::vector<std::size_t> run_order(const StudyPlan& study, const std::vector<StudyCell>& cells) {
  std::vector<std::size_t> order(cells.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (study.order == CellOrder::file) return order;
  const HashRng rng(study.seed, "order of cells");
  const auto key = [&](std::size_t i) {
    const auto round = static_cast<std::uint64_t>(cells[i].repeat);
    return std::pair(round, rng.at(round).bits(hash_name(cells[i].id)));
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

std::vector<int> looks_of(const StudyPlan& study) {
  const auto most = static_cast<int>(study.repeats);
  std::vector<int> looks;
  for (const int look : {3, 5, 10, 20})
    if (study.until_decided && look < most) looks.push_back(look);
  looks.push_back(most);
  return looks;
}

}  // namespace echelon::inline study
