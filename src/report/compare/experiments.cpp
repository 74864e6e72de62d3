// SPDX-License-Identifier: Apache-2.0
#include "report/compare/experiments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <limits>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "config/differences.hpp"
#include "config/keys.hpp"
#include "config/parse.hpp"
#include "report/scaling.hpp"

namespace echelon::inline report {
namespace {

using Attempts = std::vector<const RunRecord*>;

// A property other than the config that affects the figures.
struct Fact {
  const char* name;
  std::string (*text)(const RunRecord& run);
};
const std::array<Fact, 9> kFacts = {{
    {"ranks", [](const RunRecord& run) { return fmt::format("{}", run.ranks); }},
    {"servers", [](const RunRecord& run) { return fmt::format("{}", run.servers); }},
    {"hosts", [](const RunRecord& run) { return fmt::format("{}", run.hosts); }},
    {"mesh", [](const RunRecord& run) { return run.mesh_text; }},
    {"device", [](const RunRecord& run) { return run.device; }},
    {"device_text", [](const RunRecord& run) { return run.device_text; }},
    {"threads", [](const RunRecord& run) { return fmt::format("{}", run.threads); }},
    {"pace", [](const RunRecord& run) { return fmt::format("{}", run.paced || run.computes_at_pace()); }},
    {"shaped", [](const RunRecord& run) { return run.shaped; }},
}};

// Whether the key has no effect on what is compared, or is what tells repetitions apart.
bool ignored(const std::string& key) {
  return key == "name" || key == "seed" || key.starts_with("run.") || key.starts_with("checkpoint.");
}

bool names(const std::string& allowed, const std::string& key) {
  return key == allowed || key.starts_with(allowed + ".");
}

void check_allowed(const std::vector<std::string>& allowed) {
  std::vector<std::string> known = section_names();
  known.emplace_back("model.layers");
  for (const auto& key : config_keys()) known.push_back(key.path());
  for (const Fact& fact : kFacts) known.emplace_back(fact.name);
  for (const std::string& name : allowed) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = nearest_name(name, known);
    throw ConfigError(
        fmt::format("--allow {}: is not a key, a section or a fact of a run{}; 'echelon check --keys' "
                    "lists the keys",
                    name, near.empty() ? "" : " (did you mean '" + near + "'?)"));
  }
}

std::vector<KeyDifference> differences(const Experiment& base, const Experiment& fresh) {
  std::vector<KeyDifference> all = differing_keys(base.config, fresh.config, true);
  std::erase_if(all, [](const KeyDifference& key) { return ignored(key.key); });
  for (const Fact& fact : kFacts)
    if (const std::string here = fact.text(base.first()), there = fact.text(fresh.first()); here != there)
      all.push_back({fact.name, here.empty() ? "unknown" : here, there.empty() ? "unknown" : there});
  return all;
}

std::vector<Experiment> experiments_of(const Attempts& attempts) {
  std::vector<Experiment> all;
  for (const RunRecord* run : attempts) {
    const std::string path = run->folder + "/config.toml";
    if (!std::filesystem::exists(path))
      throw DataError(fmt::format("{}: is missing, and without it the equal runs cannot be found", path));
    const Experiment one{parse_config(read_file_whole(path), path), {run}};
    const auto equal =
        std::find_if(all.begin(), all.end(), [&](const Experiment& other) { return differences(other, one).empty(); });
    if (equal == all.end())
      all.push_back(one);
    else
      equal->attempts.push_back(run);
  }
  return all;
}

struct Differences {
  std::vector<KeyDifference> allowed, others;
};

Differences sorted_differences(const Experiment& base, const Experiment& fresh,
                               const std::vector<std::string>& allowed) {
  Differences out;
  for (const KeyDifference& key : differences(base, fresh)) {
    const bool may =
        std::any_of(allowed.begin(), allowed.end(), [&](const std::string& name) { return names(name, key.key); });
    (may ? out.allowed : out.others).push_back(key);
  }
  return out;
}

[[noreturn]] void refuse_pair(const Experiment& base, const Experiment& fresh, const std::vector<KeyDifference>& keys) {
  std::string text =
      fmt::format("BASE {} and NEW {} are runs of different experiments:\n", base.first().folder, fresh.first().folder);
  Table table({"  key", "BASE", "NEW"});
  for (const KeyDifference& key : keys) table.row({"  " + key.key, key.left, key.right});
  text += table.text() + "to compare them anyway, give --allow KEY once for each key or section";
  throw ConfigError(text);
}

}  // namespace

std::string title_of_run(const RunRecord& run) {
  std::string title =
      fmt::format("{}: {}, {}, {}", run.name, run.mesh_text, exchange_name(run), counted(run.ranks, "rank"));
  if (run.servers > 0) title += " + " + counted(run.servers, "server");
  title += fmt::format(" on {}, global batch {}", counted(run.hosts, "host"), run.global_batch);
  if (run.codec_text != "none") title += ", coded as " + run.codec_text;
  if (!run.shaped.empty()) title += ", shaped to " + run.shaped;
  return title + (run.paced ? " (paced)" : "");
}

PairedExperiments pair_experiments(const Attempts& base, const Attempts& fresh,
                                   const std::vector<std::string>& allowed) {
  check_allowed(allowed);
  const std::vector<Experiment> left = experiments_of(base), right = experiments_of(fresh);
  std::vector<bool> taken(right.size(), false);
  PairedExperiments out;
  for (const Experiment& experiment : left) {
    Differences best;
    std::size_t nearest = right.size(), least = std::numeric_limits<std::size_t>::max();
    for (std::size_t i = 0; i < right.size(); ++i) {
      const Differences found = sorted_differences(experiment, right[i], allowed);
      const std::size_t distance = found.others.size() * 1000 + found.allowed.size();
      if (distance < least) nearest = i, least = distance, best = found;
    }
    if (!best.others.empty()) refuse_pair(experiment, right[nearest], best.others);
    taken[nearest] = true;
    ExperimentPair pair{experiment, right[nearest], {}};
    for (const KeyDifference& key : best.allowed)
      pair.allowed.push_back(fmt::format("{}: {}, then {}", key.key, key.left, key.right));
    out.pairs.push_back(std::move(pair));
  }
  for (std::size_t i = 0; i < right.size(); ++i)
    if (!taken[i]) out.unanswered.push_back(title_of_run(right[i].first()));
  return out;
}

}  // namespace echelon::inline report
