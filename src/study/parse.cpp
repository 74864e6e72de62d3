// [study] of an experiment's file.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "config/batch_plan.hpp"
#include "config/keys.hpp"
#include "config/parse.hpp"
#include "study/search.hpp"
#include "study/study.hpp"

namespace echelon::inline study {
namespace {

constexpr std::int64_t kMostRanks = 65536;

class Reader {
 public:
  explicit Reader(StudyPlan& study) : study_(study), origin_{study.file, true} {}

  void section(const TomlNode& node) {
    static const std::vector<std::string> known = {
        "ranks",  "mode",   "repeats", "warmup_steps", "placement", "budget_hours", "network",      "slurm",
        "search", "trials", "halving", "axes",         "ranges",    "variants",     "side_by_side", "grid_steps"};
    for (const TomlEntry& entry : node.entries) {
      if (entry.key == "ranks")
        study_.ranks = list(entry, {1, static_cast<double>(kMostRanks)});
      else if (entry.key == "mode")
        study_.mode = static_cast<StudyMode>(word(entry, {"strong", "weak", "to_target"}));
      else if (entry.key == "placement")
        study_.placement = static_cast<CellPlacement>(word(entry, {"compact", "spread"}));
      else if (entry.key == "repeats")
        study_.repeats = std::get<std::int64_t>(value(entry, std::int64_t{}, {1, 1000}));
      else if (entry.key == "warmup_steps")
        study_.warmup_steps = std::get<std::int64_t>(value(entry, std::int64_t{}, {1, 1e6}));
      else if (entry.key == "budget_hours")
        study_.budget_hours = std::get<double>(value(entry, 0.0, {0, 1e6}));
      else if (entry.key == "network")
        study_.network = std::get<bool>(value(entry, false, {}));
      else if (entry.key == "slurm")
        study_.slurm = slurm(entry);
      else if (entry.key == "search")
        study_.search = static_cast<SearchMethod>(word(entry, {"grid", "random", "bayesian"}));
      else if (entry.key == "trials")
        study_.trials = std::get<std::int64_t>(value(entry, std::int64_t{}, {1, 100000}));
      else if (entry.key == "grid_steps")
        study_.grid_steps = std::get<std::int64_t>(value(entry, std::int64_t{}, {1, 1000}));
      else if (entry.key == "side_by_side")
        study_.side_by_side =
            std::get<std::int64_t>(value(entry, std::int64_t{}, {0, static_cast<double>(kMostRanks)}));
      else if (entry.key == "halving")
        study_.halving = halving(entry);
      else if (entry.key == "ranges")
        for (const TomlEntry& range : entries_of(entry, "{ low = .., high = .. }"))
          study_.ranges.push_back(this->range(range));
      else if (entry.key == "axes")
        for (const TomlEntry& axis : entries_of(entry, "[..]")) study_.axes.push_back(this->axis(axis));
      else if (entry.key == "variants")
        variants(entry);
      else
        refuse(entry.line, entry.column, unknown_name("key in [study]", entry.key, known));
    }
  }

 private:
  [[noreturn]] void refuse(int line, int column, const std::string& why) const {
    throw ConfigError(fmt::format("{}: {}", origin_.at(line, column), why));
  }

  KeyValue value(const TomlEntry& entry, const KeyValue& like, const KeyLimits& limits) const {
    return read_value(entry.node, like, limits, "study." + entry.key, origin_);
  }

  std::size_t word(const TomlEntry& entry, const std::vector<std::string>& words) const {
    const auto text = std::get<std::string>(value(entry, std::string(), {.low = 1, .high = 0, .words = words}));
    return static_cast<std::size_t>(std::find(words.begin(), words.end(), text) - words.begin());
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
        refuse(entry.line, entry.column,
               fmt::format("study.slurm: \"{}\" is no option of sbatch; e.g. slurm = [\"--time=02:00:00\"]", option));
    return options;
  }

  // Of [study.axes] or [study.ranges].
  const std::vector<TomlEntry>& entries_of(const TomlEntry& section, std::string_view like) const {
    if (section.node.kind != TomlKind::table)
      refuse(
          section.line, section.column,
          fmt::format("study.{0} is a section: write [study.{0}], and \"section.key\" = {1} below", section.key, like));
    return section.node.entries;
  }

  HalvingOptions halving(const TomlEntry& section) const {
    HalvingOptions made;
    if (section.node.kind != TomlKind::table)
      refuse(section.line, section.column, "study.halving needs braces: halving = { eta = 3, first_epochs = 2 }");
    bool has_first = false;
    for (const TomlEntry& entry : section.node.entries) {
      const auto number = [&](double least) {
        return std::get<std::int64_t>(
            read_value(entry.node, std::int64_t{}, {least, 1e6}, "study.halving." + entry.key, origin_));
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

  // The key that an axis or a range varies.
  const Key<Config>& key_of(const TomlEntry& entry, std::string_view section) const {
    const auto& keys = config_keys();
    const auto key = std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return k.path() == entry.key; });
    if (key == keys.end()) {
      std::vector<std::string> known;
      for (const auto& k : keys) known.push_back(k.path());
      const std::string near = nearest_name(entry.key, known);
      refuse(entry.line, entry.column,
             fmt::format("unknown key '{}' in [study.{}]{}; write the whole name in quotes, \"batch.global\"",
                         entry.key, section, near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near)));
    }
    if (entry.key == "name" || entry.key == "run.results")
      refuse(entry.line, entry.column, fmt::format("'{}' is set for each cell by the study", entry.key));
    return *key;
  }

  StudyAxis axis(const TomlEntry& entry) const {
    const Key<Config>& key = key_of(entry, "axes");
    const bool listed = entry.node.kind == TomlKind::array;
    if (!listed || entry.node.items.empty())
      refuse(entry.line, entry.column, fmt::format("study.axes: {} needs a list of values in brackets", entry.key));
    StudyAxis axis{.key = entry.key, .values = {}};
    for (const TomlNode& item : entry.node.items)
      axis.values.push_back(value_toml(read_value(item, key.get(Config()), key.limits, entry.key, origin_)));
    return axis;
  }

  SearchRange range(const TomlEntry& entry) const {
    const Key<Config>& key = key_of(entry, "ranges");
    const KeyValue like = key.get(Config());
    SearchRange range{.key = entry.key, .whole = std::holds_alternative<std::int64_t>(like)};
    if (!range.whole && !std::holds_alternative<double>(like))
      refuse(entry.line, entry.column,
             fmt::format("{} is no number: list its values in [study.axes] instead", entry.key));
    bool has_low = false, has_high = false;
    const auto number = [&](const TomlEntry& end) {
      const KeyValue read = read_value(end.node, like, key.limits, entry.key, origin_);
      return range.whole ? static_cast<double>(std::get<std::int64_t>(read)) : std::get<double>(read);
    };
    for (const TomlEntry& end : entry.node.entries) {
      if (end.key == "low")
        range.low = number(end), has_low = true;
      else if (end.key == "high")
        range.high = number(end), has_high = true;
      else if (end.key == "log")
        range.logarithmic = std::get<bool>(value(end, false, {}));
      else
        refuse(end.line, end.column,
               unknown_name("key of a range", end.key, std::vector<std::string>{"low", "high", "log"}));
    }
    if (!has_low || !has_high || range.low >= range.high)
      refuse(entry.line, entry.column,
             fmt::format("{} needs low < high, e.g. {{ low = 1e-4, high = 1.0, log = true }}", entry.key));
    if (range.logarithmic && range.low <= 0)
      refuse(entry.line, entry.column, fmt::format("{}: a logarithmic range begins above 0", entry.key));
    return range;
  }

  void variants(const TomlEntry& entry) {
    if (entry.node.kind != TomlKind::array)
      refuse(entry.line, entry.column, "write [[study.variants]], once a variant");
    for (const TomlNode& item : entry.node.items) {
      if (item.kind != TomlKind::table) refuse(item.line, item.column, "write [[study.variants]], once a variant");
      study_.variants.push_back(variant(item));
      const auto same = [&](const StudyVariant& v) { return v.name == study_.variants.back().name; };
      if (std::count_if(study_.variants.begin(), study_.variants.end(), same) > 1)
        refuse(item.line, item.column, fmt::format("two variants are named \"{}\"", study_.variants.back().name));
    }
  }

  StudyVariant variant(const TomlNode& node) const {
    StudyVariant made;
    made.where = origin_.at(node.line, node.column);
    for (const TomlEntry& entry : node.entries) {
      if (entry.key == "name")
        made.name = std::get<std::string>(value(entry, std::string(), {.low = 1, .high = 0, .filled = true}));
      else if (entry.key == "set")
        made.sets = std::get<std::vector<std::string>>(value(entry, std::vector<std::string>(), {.low = 1, .high = 0}));
      else
        refuse(entry.line, entry.column,
               unknown_name("key in [[study.variants]]", entry.key, std::vector<std::string>{"name", "set"}));
    }
    if (made.name.empty()) refuse(node.line, node.column, "a variant needs a name");
    return made;
  }

  StudyPlan& study_;
  Origin origin_;
};

void check_study(const StudyPlan& study, const Config& base) {
  if (study.ranks.empty())
    throw ConfigError(fmt::format("{}: [study] needs the numbers of ranks, e.g. ranks = [1, 2, 4]", study.file));
  if (study.mode == StudyMode::to_target && base.goal.metric == GoalMetric::none)
    throw ConfigError(fmt::format(
        "{}: study.mode = \"to_target\" needs a goal to reach: [goal] metric = \"test_accuracy\", target = 0.9",
        study.file));
  const auto is_seed = [](const StudyAxis& axis) { return axis.key == "seed"; };
  if (study.repeats > 1 && std::any_of(study.axes.begin(), study.axes.end(), is_seed))
    throw ConfigError(fmt::format("{}: repeats change the seed, which is an axis here; write repeats = 1", study.file));
  const std::int64_t steps = base.train.steps;
  if (steps > 0 && study.warmup_steps > 1 && study.warmup_steps >= steps)
    throw ConfigError(fmt::format("{}: study.warmup_steps = {} leaves none of the {} of a cell to measure", study.file,
                                  study.warmup_steps, counted(steps, "step")));
}

void check_search(const StudyPlan& study, const Config& base) {
  const auto refuse = [&](const std::string& why) { throw ConfigError(fmt::format("{}: {}", study.file, why)); };
  if (!study.search) {
    if (!study.ranges.empty()) refuse("[study.ranges] is for searches: set study.search, e.g. \"bayesian\"");
    if (study.halving) refuse("study.halving is for searches: set study.search, e.g. \"random\"");
    return;
  }
  if (study.ranges.empty() && study.axes.empty())
    refuse("study.search needs what to vary: [study.ranges] for numbers, [study.axes] for choices");
  if (study.ranks.size() > 1 || study.repeats > 1 || !study.variants.empty())
    refuse("study.search goes with one number of ranks, repeats = 1 and no variants");
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
    refuse("study.halving resumes a trial that goes on: leave out run.restart = \"never\"");
  const std::vector<SearchRange> ranges = ranges_of(study);
  for (const SearchRange& range : ranges)
    if (range.key == "train.epochs" || range.key == "train.steps")
      refuse(fmt::format("study.halving sets {} for each trial, which cannot be searched for", range.key));
}

}  // namespace

StudyPlan plain_study(const std::string& path, const std::vector<std::string>& sets) {
  StudyPlan study;
  study.file = path;
  study.sets = sets;
  const Config base = load_config(path, sets);
  study.name = base.name;
  study.seed = base.seed;
  study.folder = base.run.results + "/" + base.name;
  require_within(base.run.results, study.folder);
  study.goal = base.goal;
  return study;
}

StudyPlan load_study(const std::string& path, const std::vector<std::string>& sets) {
  for (const std::string& set : sets)
    if (set.starts_with("study."))
      throw ConfigError(
          fmt::format("--set {}: is not a setting of cells; [study] is in {}, --ranks leaves out sizes", set, path));
  StudyPlan study = plain_study(path, sets);
  const Config base = load_config(path, sets);
  const TomlNode document = read_toml(read_file_whole(path), path);
  const auto section = std::find_if(document.entries.begin(), document.entries.end(),
                                    [](const TomlEntry& entry) { return entry.key == "study"; });
  if (section == document.entries.end() || section->node.kind != TomlKind::table)
    throw ConfigError(fmt::format("{}: there is no section [study]; it needs at least ranks = [1, 2, 4]", path));
  Reader(study).section(section->node);
  check_study(study, base);
  check_search(study, base);
  check_halving(study, base);
  if (study.search)
    study.rungs =
        rungs_of(study.halving.value_or(HalvingOptions{.first_epochs = base.train.epochs}), base.train.epochs);
  if (study.search == SearchMethod::grid)
    study.trials = std::min(study.trials, static_cast<std::int64_t>(proposer_of(study).grid_size()));
  return study;
}

}  // namespace echelon::inline study
