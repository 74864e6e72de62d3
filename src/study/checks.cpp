// SPDX-License-Identifier: Apache-2.0
#include "study/checks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "study/search.hpp"

namespace echelon::inline study {
namespace {

const StudyAxis* axis_of(const StudyPlan& study, std::string_view key) {
  const auto at =
      std::find_if(study.axes.begin(), study.axes.end(), [&](const StudyAxis& axis) { return axis.key == key; });
  return at == study.axes.end() ? nullptr : &*at;
}

std::string key_of(const std::string& set) {
  std::string key = set.substr(0, set.find('='));
  std::erase(key, ' ');
  return key;
}

bool sets_key(const std::vector<std::string>& sets, const std::string& key) {
  return std::any_of(sets.begin(), sets.end(), [&](const std::string& set) { return key_of(set) == key; });
}

// Refuses keys of the command line that every cell sets by itself, because they would change nothing.
void check_sets(const StudyPlan& study) {
  for (const std::string& set : study.sets) {
    const std::string key = key_of(set);
    const auto refuse = [&](const std::string& why) {
      throw ConfigError(fmt::format("--set {}: has no effect: {}", set, why));
    };
    const auto is_range = [&](const SearchRange& range) { return range.key == key; };
    if (axis_of(study, key) != nullptr || std::any_of(study.ranges.begin(), study.ranges.end(), is_range))
      refuse(fmt::format("{} is {} of the study, which sets it for each cell", key,
                         axis_of(study, key) != nullptr ? "an axis" : "a range"));
    const auto has_key = [&](const auto& named) { return sets_key(named.sets, key); };
    if (!study.variants.empty() && std::all_of(study.variants.begin(), study.variants.end(), has_key))
      refuse(fmt::format("every variant sets {}", key));
    if (!study.environments.empty() && std::all_of(study.environments.begin(), study.environments.end(), has_key))
      refuse(fmt::format("every environment sets {}", key));
  }
}

void check_environments(const StudyPlan& study) {
  for (const StudyEnvironment& environment : study.environments)
    for (const std::string& set : environment.sets)
      if (axis_of(study, key_of(set)) != nullptr)
        throw ConfigError(fmt::format("{}: {} is an axis and is also set by an environment; leave one of the two out",
                                      environment.where, key_of(set)));
}

void check_verb(const StudyPlan& study) {
  const auto refuse = [&](const std::string& why) { throw ConfigError(fmt::format("{}: {}", study.file, why)); };
  const bool trains = study.verb == "train";
  const auto is_option = [](const std::string& text) { return text.starts_with("--"); };
  bool options = !study.args.empty();
  for (const StudyAxis& axis : study.axes) options = options || is_option(axis.key);
  for (const StudyVariant& variant : study.variants)
    options = options || std::any_of(variant.sets.begin(), variant.sets.end(), is_option);
  if (trains && options)
    refuse("options of a verb (study.args, \"--sizes\") need study.verb, e.g. \"bench allreduce\"");
  if (trains) return;
  if (study.search || study.mode != StudyMode::strong || axis_of(study, "study.search") != nullptr)
    refuse(fmt::format("study.verb = \"{}\" needs mode = \"strong\" and no search", study.verb));
  if ((study.verb == "plan" || study.verb == "bench update") && (study.ranks.size() > 1 || study.ranks.front() != 1))
    refuse(fmt::format("study.verb = \"{}\" runs as one process: write ranks = [1]", study.verb));
}

void check_numbers(const StudyPlan& study, const Config& base) {
  if (study.ranks.empty())
    throw ConfigError(fmt::format("{}: [study] needs the numbers of ranks, e.g. ranks = [1, 2, 4]", study.file));
  if (study.mode == StudyMode::to_target && base.goal.metric == GoalMetric::none)
    throw ConfigError(fmt::format(
        "{}: study.mode = \"to_target\" needs a goal to reach: [goal] metric = \"test_accuracy\", target = 0.9",
        study.file));
  if (study.repeats > 1 && axis_of(study, "seed") != nullptr)
    throw ConfigError(fmt::format("{}: repeats change the seed, which is an axis here; write repeats = 1", study.file));
  const std::int64_t steps = base.train.steps;
  const auto sets_steps = [](const StudyVariant& variant) { return sets_key(variant.sets, "train.steps"); };
  const bool varies = axis_of(study, "train.steps") != nullptr ||
                      std::any_of(study.variants.begin(), study.variants.end(), sets_steps);  // checked for each cell
  if (!varies && steps > 0 && study.warmup_steps > 1 && study.warmup_steps >= steps)
    throw ConfigError(fmt::format("{}: study.warmup_steps = {} leaves none of the {} of a cell to measure", study.file,
                                  study.warmup_steps, counted(steps, "step")));
}

void check_search(const StudyPlan& study, const Config& base) {
  const auto refuse = [&](const std::string& why) { throw ConfigError(fmt::format("{}: {}", study.file, why)); };
  const bool compared = axis_of(study, "study.search") != nullptr;
  if (compared) {
    if (study.search) refuse("study.search is both an axis and a key; leave one of the two out");
    if (study.side_by_side > 0) refuse("study.side_by_side is for one search, not for several that are compared");
    if (study.ranges.empty() && study.axes.size() < 2)
      refuse("study.search needs something to vary: [study.ranges] for numbers, [study.axes] for choices");
  } else if (!study.search) {
    if (!study.ranges.empty()) refuse("[study.ranges] is for searches: set study.search, e.g. \"bayesian\"");
    if (study.halving) refuse("study.halving is for searches: set study.search, e.g. \"random\"");
    return;
  }
  if (study.search && study.ranges.empty() && study.axes.empty())
    refuse("study.search needs something to vary: [study.ranges] for numbers, [study.axes] for choices");
  if (study.search &&
      (study.ranks.size() > 1 || study.repeats > 1 || !study.variants.empty() || !study.environments.empty()))
    refuse("study.search needs one number of ranks, repeats = 1, no variants and no environments");
  if (base.goal.metric == GoalMetric::none)
    refuse("study.search needs the figure to search for: [goal] metric = \"test_accuracy\", target = 1.0");
}

void check_halving(const StudyPlan& study, const Config& base) {
  if (!study.halving) return;
  const auto refuse = [&](const std::string& why) { throw ConfigError(fmt::format("{}: {}", study.file, why)); };
  if (base.train.steps > 0 || base.train.epochs == 0)
    refuse("study.halving compares trials after epochs: set train.epochs, and train.steps = 0");
  if (study.halving->first_epochs >= base.train.epochs)
    refuse(fmt::format("study.halving.first_epochs = {} leaves nothing to stop early: train.epochs is {}",
                       study.halving->first_epochs, base.train.epochs));
  if (base.run.restart == Restart::never)
    refuse("study.halving resumes a trial that continues: leave out run.restart = \"never\"");
  const std::vector<SearchRange> ranges = ranges_of(study);
  for (const SearchRange& range : ranges)
    if (range.key == "train.epochs" || range.key == "train.steps")
      refuse(fmt::format("study.halving sets {} for each trial, which cannot be searched for", range.key));
}

}  // namespace

bool is_config_set(const std::string& set) { return !set.starts_with("study.") && !set.starts_with("--"); }

void check_study(const StudyPlan& study, const Config& base) {
  check_numbers(study, base);
  check_sets(study);
  check_environments(study);
  check_verb(study);
  check_search(study, base);
  check_halving(study, base);
}

void settle_search(StudyPlan& study, const Config& base) {
  study.rungs = rungs_of(study.halving.value_or(HalvingOptions{.first_epochs = base.train.epochs}), base.train.epochs);
  if (study.search == SearchMethod::grid)
    study.trials = std::min(study.trials, static_cast<std::int64_t>(proposer_of(study).grid_size()));
}

}  // namespace echelon::inline study
