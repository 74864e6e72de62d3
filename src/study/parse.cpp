// SPDX-License-Identifier: Apache-2.0
// [study] of an experiment's file.
#include <fmt/format.h>

#include <algorithm>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "config/batch_plan.hpp"
#include "config/keys.hpp"
#include "config/parse.hpp"
#include "study/checks.hpp"
#include "study/section_reader.hpp"

namespace echelon::inline study {
namespace {

constexpr std::int64_t kMostRanks = 65536;

class Reader : SectionReader {
 public:
  explicit Reader(StudyPlan& study) : SectionReader(study.file), study_(study) {}

  void section(const TomlNode& node) {
    static const std::vector<std::string> known = {
        "ranks",        "mode",       "repeats",    "warmup_steps", "placement", "budget_hours", "network",
        "slurm",        "search",     "trials",     "halving",      "axes",      "ranges",       "variants",
        "side_by_side", "grid_steps", "order",      "keep",         "verb",      "args",         "max_repeats",
        "environments", "margin",     "least_gain", "sharpness"};
    for (const TomlEntry& entry : node.entries) {
      if (entry.key == "ranks")
        study_.ranks = list(entry, {1, static_cast<double>(kMostRanks)});
      else if (entry.key == "mode")
        study_.mode = static_cast<StudyMode>(word(entry, {"strong", "weak", "to_target"}));
      else if (entry.key == "placement")
        study_.placement = static_cast<CellPlacement>(word(entry, {"compact", "spread"}));
      else if (entry.key == "order")
        study_.order = static_cast<CellOrder>(word(entry, {"shuffled", "file"}));
      else if (entry.key == "keep")
        study_.keep = static_cast<CellKeep>(word(entry, {"all", "records"}));
      else if (entry.key == "repeats")
        repeats(entry);
      else if (entry.key == "max_repeats")
        max_repeats_ = whole(entry, 1, 1000), max_repeats_at_ = &entry;
      else if (entry.key == "verb")
        study_.verb = verb(entry);
      else if (entry.key == "args")
        study_.args = texts(entry);
      else if (entry.key == "warmup_steps")
        study_.warmup_steps = whole(entry, 1, 1e6);
      else if (entry.key == "budget_hours")
        study_.budget_hours = std::get<double>(value(entry, 0.0, {0, 1e6}));
      else if (entry.key == "margin")
        study_.rules.margin = std::get<double>(value(entry, 0.0, {0, 1}));
      else if (entry.key == "least_gain")
        study_.rules.least_gain = std::get<double>(value(entry, 0.0, {0, 10}));
      else if (entry.key == "sharpness")
        study_.sharpness = std::get<double>(value(entry, 0.0, {0, 1}));
      else if (entry.key == "network")
        study_.network = std::get<bool>(value(entry, false, {}));
      else if (entry.key == "slurm")
        study_.slurm = slurm(entry);
      else if (entry.key == "search")
        study_.search = static_cast<SearchMethod>(word(entry, {"grid", "random", "bayesian"}));
      else if (entry.key == "trials")
        study_.trials = whole(entry, 1, 100000);
      else if (entry.key == "grid_steps")
        study_.grid_steps = whole(entry, 1, 1000);
      else if (entry.key == "side_by_side")
        study_.side_by_side = whole(entry, 0, kMostRanks);
      else if (entry.key == "halving")
        study_.halving = halving(entry);
      else if (entry.key == "ranges")
        read_ranges(*this, entry, study_);
      else if (entry.key == "axes")
        read_axes(*this, entry, study_);
      else if (entry.key == "variants")
        read_variants(*this, entry, study_);
      else if (entry.key == "environments")
        read_environments(*this, entry, study_);
      else
        refuse(entry.line, entry.column, unknown_name("key in [study]", entry.key, known));
    }
    if (max_repeats_at_ != nullptr && !study_.until_decided)
      refuse(*max_repeats_at_, "study.max_repeats goes with repeats = \"until decided\"");
    if (study_.until_decided) study_.repeats = max_repeats_;
  }

 private:
  void repeats(const TomlEntry& entry) {
    study_.until_decided = entry.node.kind == TomlKind::text;
    if (study_.until_decided)
      (void)word(entry, {"until decided"});
    else
      study_.repeats = whole(entry, 1, 1000);
  }

  std::string verb(const TomlEntry& entry) const {
    const std::string named = kStudyVerbs[word(entry, {std::begin(kStudyVerbs), std::end(kStudyVerbs)})];
    return named == "run" ? "supervise" : named;  // its older name
  }

  std::vector<std::int64_t> list(const TomlEntry& entry, const KeyLimits& limits) const {
    auto ranks = std::get<std::vector<std::int64_t>>(value(entry, std::vector<std::int64_t>(), limits));
    if (ranks.empty()) refuse(entry.line, entry.column, "study.ranks is empty; e.g. ranks = [1, 2, 4]");
    std::sort(ranks.begin(), ranks.end());
    if (const auto twice = std::adjacent_find(ranks.begin(), ranks.end()); twice != ranks.end())
      refuse(entry.line, entry.column, fmt::format("study.ranks has {} twice", *twice));
    return ranks;
  }

  std::vector<std::string> slurm(const TomlEntry& entry) const {
    auto options = std::get<std::vector<std::string>>(value(entry, std::vector<std::string>(), {.low = 1, .high = 0}));
    for (const std::string& option : options)
      if (!option.starts_with("-") || option.find('\n') != std::string::npos)
        refuse(
            entry.line, entry.column,
            fmt::format("study.slurm: \"{}\" is not an option of sbatch; e.g. slurm = [\"--time=02:00:00\"]", option));
    return options;
  }

  HalvingOptions halving(const TomlEntry& section) const {
    HalvingOptions made;
    if (section.node.kind != TomlKind::table)
      refuse(section.line, section.column, "study.halving needs braces: halving = { eta = 3, first_epochs = 2 }");
    bool has_first = false;
    for (const TomlEntry& entry : section.node.entries) {
      const auto number = [&](double least) {
        return std::get<std::int64_t>(
            read_value(entry.node, std::int64_t{}, {least, 1e6}, "study.halving." + entry.key, origin()));
      };
      if (entry.key == "eta")
        made.eta = number(2);
      else if (entry.key == "first_epochs")
        made.first_epochs = number(1), has_first = true;
      else if (entry.key == "asynchronous")
        made.asynchronous = std::get<bool>(value(entry, false, {}));
      else
        refuse(entry.line, entry.column,
               unknown_name("key of study.halving", entry.key,
                            std::vector<std::string>{"eta", "first_epochs", "asynchronous"}));
    }
    if (!has_first)
      refuse(section.line, section.column,
             "study.halving needs the epochs of the first rung: halving = { eta = 3, first_epochs = 2 }");
    return made;
  }

  StudyPlan& study_;
  std::int64_t max_repeats_ = 20;
  const TomlEntry* max_repeats_at_ = nullptr;
};

std::string text_of(const std::string& path) {
  try {
    return read_file_whole(path);
  } catch (const Error& error) {
    throw ConfigError(fmt::format("the experiment's file {}", error.what()));
  }
}

// A text that changes only if a cell would train differently, not with how it is run, watched or judged.
std::string experiment_of(Config base) {
  base.name.clear();
  base.run = {};
  base.checkpoint = {};
  base.monitor = {};
  base.cost = {};
  base.goal = {.metric = base.goal.metric, .target = base.goal.target, .stop = base.goal.stop};
  return hex64(checksum64(echo_config(base)));
}

void take_base(StudyPlan& study, const Config& base) {
  study.experiment = experiment_of(base);
  study.name = base.name;
  study.seed = base.seed;
  study.folder = base.run.results + "/" + base.name;
  require_within(base.run.results, study.folder);
  study.goal = base.goal;
  study.on_gpus = base.device.kind == "cuda";
}

}  // namespace

StudyPlan plain_study(const std::string& path, const std::vector<std::string>& sets) {
  StudyPlan study;
  study.file = path;
  study.sets = sets;
  take_base(study, load_config(path, sets));
  return study;
}

Config base_config(const StudyPlan& study) {
  if (study.verb == "bench allreduce") return parse_config(text_of(study.file), study.file, study.sets);
  try {
    return load_config(study.file, study.sets);
  } catch (const ConfigError&) {
    for (const StudyChoice& choice : study_choices(study)) try {
        std::vector<std::string> sets = study.sets;
        for (const std::string& set : choice.sets)
          if (is_config_set(set)) sets.push_back(set);
        return load_config(choice.file.empty() ? study.file : choice.file, sets);
      } catch (const ConfigError&) {
      }
    throw;
  }
}

StudyPlan load_study(const std::string& path, const std::vector<std::string>& sets) {
  for (const std::string& set : sets)
    if (set.starts_with("study."))
      throw ConfigError(fmt::format(
          "--set {}: is not a setting of cells; edit [study] in {}, or leave sizes out with --ranks", set, path));
  StudyPlan study;
  study.file = path;
  study.sets = sets;
  const TomlNode document = read_toml(text_of(path), path);
  const auto section = std::find_if(document.entries.begin(), document.entries.end(),
                                    [](const TomlEntry& entry) { return entry.key == "study"; });
  if (section == document.entries.end() || section->node.kind != TomlKind::table)
    throw ConfigError(fmt::format("{}: has no section [study], which needs at least ranks = [1, 2, 4]", path));
  Reader(study).section(section->node);
  const Config base = base_config(study);
  take_base(study, base);
  check_study(study, base);
  if (study.search) settle_search(study, base);
  return study;
}

}  // namespace echelon::inline study
