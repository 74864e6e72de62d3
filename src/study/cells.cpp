// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/check.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "config/keys.hpp"
#include "config/parse.hpp"
#include "config/traits/rules.hpp"
#include "study/checks.hpp"
#include "study/study.hpp"

namespace echelon::inline study {
namespace {

constexpr std::array<std::string_view, 3> kSearchNames = {"grid", "random", "bayesian"};  // SearchMethod
constexpr char kSeparator = '\x1f';  // separates the parts of a line; no key or value contains it

// Keeps letters and digits; replaces anything else by a hyphen.
std::string slug(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

// False for sets that only change how a run is executed or judged, so that a finished cell is not run again for them.
bool changes_training(const std::string& set) {
  const auto is = [&](std::string_view section) { return set.starts_with(section); };
  if (is("goal.")) return is("goal.metric=") || is("goal.target=") || is("goal.stop=");
  return !is("run.") && !is("cost.");
}

std::vector<std::string> mode_sets(StudyMode mode) {
  if (mode == StudyMode::weak) return {"batch.scale_with_replicas=true"};
  if (mode == StudyMode::to_target) return {"goal.stop=true"};
  return {};
}

// Cuts a list by rank to the ranks of the cell, because an environment is meant for all sizes.
std::string fitted(const std::string& set, int ranks) {
  constexpr std::string_view kByRank = "device.pace_factors=";
  TomlNode list;
  if (!set.starts_with(kByRank) || !read_toml_value(set.substr(kByRank.size()), list) ||
      std::ssize(list.items) <= ranks)
    return set;
  std::vector<double> kept;
  for (int rank = 0; rank < ranks; ++rank) kept.push_back(list.items[static_cast<std::size_t>(rank)].real);
  return std::string(kByRank) + value_toml(kept);
}

// Sets a key of the cell itself; throws ConfigError for one that cells do not have.
void take_cell_key(StudyCell& cell, const std::string& set) {
  static const std::vector<std::string> placements = {"compact", "spread"},
                                        known = {"study.placement", "study.hosts", "study.search"};
  const std::size_t equals = set.find('=');
  const std::string key = set.substr(0, equals), value = set.substr(std::min(equals, set.size() - 1) + 1);
  if (key == "study.placement") {
    const auto at = std::find(placements.begin(), placements.end(), value);
    if (at == placements.end()) throw ConfigError(unknown_name("study.placement", value, placements));
    cell.placement = static_cast<CellPlacement>(at - placements.begin());
  } else if (key == "study.hosts") {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), cell.hosts);
    if (error != std::errc() || end != value.data() + value.size() || cell.hosts < 1)
      throw ConfigError(fmt::format("study.hosts = {}: a whole number of hosts, at least 1", value));
  } else if (key == "study.search") {
    cell.search = value;
  } else {
    throw ConfigError(unknown_name("key of a cell", key, known));
  }
}

}  // namespace

std::string StudyCell::title() const {
  std::string in;
  for (const std::string& environment : environments) in += (in.empty() ? "" : ", ") + environment;
  return in.empty() ? text : fmt::format("{}{}in {}", text, text.empty() ? "" : "; ", in);
}

StudyCell make_cell(const StudyPlan& study, const StudySetting& setting, int ranks, int repeat,
                    const StudyEnvironment& environment) {
  constexpr std::size_t kSlug = 80;
  StudyCell cell;
  cell.ranks = ranks;
  cell.repeat = repeat;
  cell.text = setting.text;
  cell.file = setting.file.empty() ? study.file : setting.file;
  cell.placement = study.placement;
  cell.seed = study.seed + static_cast<std::uint64_t>(repeat) - 1;
  cell.environments = {environment.name};
  cell.options = study.args;
  cell.sets = study.sets;
  for (const std::string& set : mode_sets(study.mode)) cell.sets.push_back(set);
  std::vector<std::string> own = setting.sets;
  for (const std::string& set : environment.sets) own.push_back(fitted(set, ranks));
  std::string all = study.experiment + "\n";  // everything but the name that makes it another cell
  for (const std::string& set : own) {
    if (set.starts_with("study."))
      take_cell_key(cell, set);
    else if (set.starts_with("--"))
      cell.options.push_back(set);
    else
      cell.sets.push_back(set);
    if (!is_config_set(set)) all += set + "\n";
  }
  for (std::size_t i = 0; i < cell.sets.size(); ++i)
    if (i >= study.sets.size() || changes_training(cell.sets[i])) all += cell.sets[i] + "\n";
  if (study.warmup_steps > 1) all += fmt::format("study.warmup_steps={}\n", study.warmup_steps);
  if (cell.file != study.file) all += cell.file + "\n";
  for (const std::string& arg : study.args) all += arg + "\n";
  const std::string words = slug(cell.title()).substr(0, kSlug);
  cell.id =
      fmt::format("k{}_{}{}r{}-{:06x}", ranks, words, words.empty() ? "" : "_", repeat, checksum64(all) & 0xffffff);
  const std::string peak = fmt::format("run.measure_peak={}", !study.search);
  cell.sets.insert(cell.sets.begin(), peak);  // a study's --set may unset it
  if (study.repeats > 1) cell.sets.push_back(fmt::format("seed={}", cell.seed));
  cell.sets.push_back("run.results=" + study.folder);
  cell.sets.push_back("name=" + cell.id);
  return cell;
}

StudyCell at_rung(const StudyPlan& study, const StudyCell& trial, std::size_t rung) {
  if (!study.halving) return trial;
  StudyCell cell = trial;
  cell.sets.push_back(fmt::format("train.epochs={}", study.rungs[rung]));
  const OptimiserConfig optimiser = load_config(trial.file, trial.sets).optimiser;
  const ScheduleTraits* schedule = find_traits(kSchedules, optimiser.schedule);
  if (schedule && schedule->spans_the_run && optimiser.schedule_epochs == 0)
    cell.sets.push_back(fmt::format("optimizer.schedule_epochs={}", study.rungs.back()));
  return cell;
}

std::string folder_of(const StudyPlan& study, const StudyCell& cell) { return study.folder + "/" + cell.id; }

StudyPlan search_of(const StudyPlan& study, const StudyCell& cell) {
  StudyPlan search = study;
  search.folder = folder_of(study, cell) + "/search";
  search.name = cell.id;
  search.file = cell.file;
  search.seed = cell.seed;
  search.ranks = {cell.ranks};
  search.repeats = 1;
  search.until_decided = false;
  search.budget_hours = 0;
  search.environments.clear(), search.variants.clear();
  std::erase_if(search.axes, [](const StudyAxis& axis) { return axis.key == "study.search"; });
  search.search = static_cast<SearchMethod>(std::find(kSearchNames.begin(), kSearchNames.end(), cell.search) -
                                            kSearchNames.begin());
  search.sets = cell.sets;  // include the seed of the round; the trials get names of their own
  settle_search(search, load_config(cell.file, cell.sets));
  return search;
}

std::string to_line(const StudyCell& cell) {
  std::vector<std::string> parts = {cell.id,
                                    cell.text,
                                    std::to_string(cell.ranks),
                                    std::to_string(cell.repeat),
                                    cell.file,
                                    std::to_string(static_cast<int>(cell.placement)),
                                    std::to_string(cell.hosts),
                                    cell.search,
                                    std::to_string(cell.seed),
                                    std::to_string(cell.options.size())};
  parts.insert(parts.end(), cell.options.begin(), cell.options.end());
  parts.insert(parts.end(), cell.sets.begin(), cell.sets.end());
  return fmt::format("{}", fmt::join(parts, std::string(1, kSeparator)));
}

StudyCell cell_of_line(const std::string& line) {
  constexpr std::size_t kFixed = 10;
  std::vector<std::string> parts(1);
  for (const char c : line) {
    if (c == kSeparator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  ECHELON_CHECK_GE(parts.size(), kFixed);
  const auto options = static_cast<std::ptrdiff_t>(kFixed) + std::stoi(parts[9]);
  ECHELON_CHECK_GE(std::ssize(parts), options);
  StudyCell cell;
  cell.id = parts[0];
  cell.text = parts[1];
  cell.ranks = std::stoi(parts[2]);
  cell.repeat = std::stoi(parts[3]);
  cell.file = parts[4];
  cell.placement = static_cast<CellPlacement>(std::stoi(parts[5]));
  cell.hosts = std::stoi(parts[6]);
  cell.search = parts[7];
  cell.seed = std::stoull(parts[8]);
  cell.options = {parts.begin() + static_cast<std::ptrdiff_t>(kFixed), parts.begin() + options};
  cell.sets = {parts.begin() + options, parts.end()};
  return cell;
}

}  // namespace echelon::inline study
