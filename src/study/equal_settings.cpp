// SPDX-License-Identifier: Apache-2.0
#include "study/equal_settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "config/keys.hpp"
#include "config/parse.hpp"
#include "config/traits/strategies.hpp"

namespace echelon::inline study {
namespace {

constexpr const char* kOneWorker = "one worker";

// Keys of an all-reduce, which has no effect on one rank.
constexpr Words kAllreduceKeys = {"algorithm", "segment_kb", "inner", "outer", "messages_in_flight", "helpers"};

bool means_nothing_alone(const Key<Config>& key, const Config& config) {
  if (key.section == "parallel" || key.section == "network") return true;
  if (key.path() == "batch.scale_with_replicas") return true;
  if (!key.section.starts_with("exchange") || key.path() == "exchange.strategy") return false;
  const StrategyTraits strategy = strategy_traits(config.exchange.strategy);
  if (strategy.sums_gradients()) return true;
  return key.section == "exchange" && strategy.all_reduces() && kAllreduceKeys.contains(key.name);
}

bool concerns_split(const std::string& text) { return text.starts_with("parallel."); }

}  // namespace

std::string effect_of(const StudyCell& cell) {
  std::string text = fmt::format("{} ranks\n", cell.ranks);
  if (cell.ranks > 1) text += fmt::format("{} {}\n", static_cast<int>(cell.placement), cell.hosts);
  text += cell.search + "\n";
  for (const std::string& option : cell.options) text += option + "\n";
  try {
    Config config = load_config(cell.file, cell.sets);
    config.name.clear();
    for (const auto& key : config_keys())
      if (cell.ranks == 1 && means_nothing_alone(key, config)) key.set(config, key.get(Config()));
    return text + echo_config(config);
  } catch (const Error&) {
    return text + cell.id;
  }
}

bool is_split_on_one_rank(const StudyCell& cell) {
  if (cell.ranks > 1) return false;
  try {
    const ParallelConfig parallel = load_config(cell.file, cell.sets).parallel;
    return parallel.pipeline > 1 || parallel.tensor > 1 || parallel.space > 1;
  } catch (const Error&) {
    return false;
  }
}

std::string common_name(const std::vector<const StudyChoice*>& settings, int ranks, const StudyPlan& study,
                        bool without_split) {
  StudyChoice common = *settings.front();
  for (std::size_t word = 0; word < common.words.size(); ++word) {
    std::string& text = common.words[word];
    const bool differs = std::any_of(settings.begin(), settings.end(),
                                     [&](const StudyChoice* other) { return other->words[word] != text; });
    if (word > 0) {
      if (differs || (without_split && concerns_split(text))) text.clear();
      continue;
    }
    const auto splits = [&](const StudyVariant& variant) {
      return variant.name == text && std::any_of(variant.sets.begin(), variant.sets.end(), concerns_split);
    };
    const bool split = without_split && std::any_of(study.variants.begin(), study.variants.end(), splits);
    if (!differs && !split) continue;
    if (ranks == 1) {
      text = kOneWorker;
      continue;
    }
    std::vector<std::string> names;
    for (const StudyChoice* setting : settings)
      if (std::find(names.begin(), names.end(), setting->words[0]) == names.end()) names.push_back(setting->words[0]);
    text = fmt::format("{}", fmt::join(names, " / "));
  }
  return common.text();
}

}  // namespace echelon::inline study
