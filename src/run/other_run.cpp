// SPDX-License-Identifier: Apache-2.0
#include "run/other_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "checkpoint/saved_model.hpp"
#include "checkpoint/trained_data.hpp"
#include "config/choices.hpp"
#include "config/parse.hpp"
#include "config/refuse.hpp"
#include "h5/file.hpp"
#include "job/run_folder.hpp"
#include "optim/rules.hpp"

namespace echelon::inline run {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "run.resume_from";
constexpr const char* kWeights = "weights/";
constexpr const char* kStrategy = "strategy/";  // what a strategy keeps

SavedCheckpoint find_source(const Config& config) {
  try {
    return find_saved(config.run.resume_from);
  } catch (const ConfigError& error) {
    refuse(config, kKey, fmt::format("{}: {}", kKey, error.what()));
  }
}

// Reads the config as it was written, without this process's environment. None if this version cannot read it.
std::optional<Config> config_of(const SavedCheckpoint& source) {
  try {
    return parse_config(read_file_whole(source.config_file), source.config_file);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

// Returns the parts behind `prefix` of the names of a file's datasets.
std::set<std::string> names_below(const h5::Reader& reader, const std::string& prefix) {
  std::set<std::string> names;
  for (const h5::DatasetInfo& info : reader.datasets())
    if (info.name.starts_with(prefix)) names.insert(info.name.substr(prefix.size()));
  return names;
}

// "momentum" of "optimiser/momentum/conv1.weight".
std::set<std::string> optimiser_states(const h5::Reader& reader) {
  std::set<std::string> states;
  for (const std::string& name : names_below(reader, "optimiser/")) states.insert(name.substr(0, name.find('/')));
  return states;
}

// Names what strategies and their codecs keep beside weights and optimiser states, each once.
std::vector<std::string> kept_states(const h5::Reader& reader) {
  static const std::vector<std::pair<std::string_view, std::string_view>> words = {
      {"residual/", "residuals"},
      {"owed_sums/", "residuals"},
      {"local_momentum/", "momentum of single replicas"},
      {"codec_tau", "thresholds"},
      {"master/", "exact weights of the servers"},
      {"strategy_tau", "thresholds"},
      {"strategy/residual/", "residuals"},
      {"strategy/local_", "optimiser states of single replicas"},
      {"strategy/deviation/", "distances of replicas"},
  };
  std::vector<std::string> kept;
  for (const h5::DatasetInfo& info : reader.datasets()) {
    const auto known =
        std::find_if(words.begin(), words.end(), [&](const auto& word) { return info.name.starts_with(word.first); });
    std::string text;
    if (known != words.end()) {
      text = known->second;
    } else if (info.name.starts_with(kStrategy)) {  // "outer momentum" of "strategy/outer_momentum/conv1.weight"
      const std::string rest = info.name.substr(std::strlen(kStrategy));
      text = rest.substr(0, rest.find('/'));
      std::replace(text.begin(), text.end(), '_', ' ');
    }
    if (!text.empty() && std::find(kept.begin(), kept.end(), text) == kept.end()) kept.push_back(text);
  }
  return kept;
}

void require_same_model(const Config& config, const h5::Reader& reader, const Graph& graph) {
  const std::set<std::string> there = names_below(reader, kWeights);
  std::set<std::string> here;
  for (const Parameter& parameter : graph.parameters().with_frozen()) {
    here.insert(parameter.name);
    if (!there.contains(parameter.name)) {
      const std::vector<std::string> known(there.begin(), there.end());
      const std::string near = nearest_name(parameter.name, known);
      refuse(config, kKey,
             fmt::format("{}: {} belongs to another model: it holds no 'weights/{}'{}", kKey, reader.path(),
                         parameter.name, near.empty() ? "" : fmt::format(" (the nearest is 'weights/{}')", near)));
    }
    const Shape shape = reader.info(kWeights + parameter.name).shape;
    if (shape != parameter.shape)
      refuse(config, kKey,
             fmt::format("{}: {} belongs to another model: its 'weights/{}' is {}, but this model needs {}", kKey,
                         reader.path(), parameter.name, shape.text(), parameter.shape.text()));
  }
  for (const std::string& name : there)
    if (!here.contains(name))
      refuse(config, kKey,
             fmt::format("{}: {} belongs to another model: it holds 'weights/{}', which this model does not have", kKey,
                         reader.path(), name));
}

// The position in a run counts steps of one batch over one number of samples.
void require_same_steps(const Config& config, const h5::Reader& reader, std::int64_t step, const RunPlan& plan) {
  const std::string instead = "or load only the weights: run.resume_weights_only = true";
  const std::int64_t batch = reader.attribute_int("global_batch");
  if (batch != plan.batch.global)
    refuse(
        config, "batch.global",
        fmt::format(
            "{}: {} was trained in steps of {}, but this run would take {}: set batch.global so that a step has {}, {}",
            kKey, reader.path(), counted(batch, "sample"), plan.batch.global, batch, instead));
  const std::int64_t samples = trained_data_in(reader.path()).samples;
  if (samples != plan.train.samples())
    refuse(config, "data.train",
           fmt::format("{}: {} was trained on {}, but data.train holds {}: its position in the data does not apply "
                       "here; name the same data, {}",
                       kKey, reader.path(), counted(samples, "sample"), count_text(plan.train.samples()), instead));
  if (step >= plan.total_steps)
    refuse(config, kKey,
           fmt::format("{}: {} is at step {}, and this run ends at step {} (train.epochs = {}, train.steps = {}; both "
                       "count from the first run): raise them, {}",
                       kKey, reader.path(), count_text(step), count_text(plan.total_steps), config.train.epochs,
                       config.train.steps, instead));
}

// The state in a checkpoint that a run of this config cannot use.
class UnusedState {
 public:
  UnusedState(const Config& config, const h5::Reader& reader, const std::optional<Config>& source)
      : config_(config), reader_(reader), source_(source) {}

  void decide(TakeUp& taken) {
    decide_optimiser(taken);
    decide_residuals(taken);
    if (!names_below(reader_, "carried/").empty() && config_.data.order != Order::stream)
      add("recurrent states left out: data.order is not \"stream\"");
    taken.left_out = fmt::format("{}", fmt::join(texts_, "; "));
  }

 private:
  void add(std::string_view text) { texts_.emplace_back(text); }

  void decide_optimiser(TakeUp& taken) {
    const std::set<std::string> there = optimiser_states(reader_);
    const RuleInfo& rule = rule_of(config_.optimiser);
    const auto has = [&](std::string_view state) { return there.contains(std::string(state)); };
    taken.optimiser = source_ && shares_states(rule_of(source_->optimiser), rule) &&
                      std::all_of(rule.states.begin(), rule.states.end(), has);
    std::vector<std::string> unused;
    for (const std::string& state : there)
      if (!taken.optimiser || std::find(rule.states.begin(), rule.states.end(), state) == rule.states.end())
        unused.push_back(state);
    if (!unused.empty()) add(fmt::format("optimiser states left out: {}", fmt::join(unused, ", ")));
    if (!taken.optimiser && !rule.states.empty())
      add(fmt::format("those of rule \"{}\" begin at zero: {}", rule.name, fmt::join(rule.states, ", ")));
    if (!taken.optimiser && reader_.has_attribute("loss_scale")) add("the loss scale starts at its initial value");
  }

  void decide_residuals(TakeUp& taken) {
    const std::vector<std::string> kept = kept_states(reader_);
    const bool same_strategy = source_ && source_->exchange.strategy == config_.exchange.strategy;
    taken.residuals = !kept.empty() && same_strategy && source_->exchange.codec == config_.exchange.codec &&
                      source_->exchange.code_sums == config_.exchange.code_sums &&
                      source_->optimiser.momentum_before_coding == config_.optimiser.momentum_before_coding &&
                      source_->exchange.asynchronous.states == config_.exchange.asynchronous.states;
    if (source_ && !same_strategy)
      return add(fmt::format("resumed from `{}`; {}", source_->exchange.strategy, dropped_text(kept)));
    if (kept.empty() || taken.residuals) return;
    add("residuals left out" + (source_ ? fmt::format(" of codec \"{}\" with strategy \"{}\"", source_->exchange.codec,
                                                      source_->exchange.strategy)
                                        : ""));
  }

  // "residuals, thresholds dropped": what only that strategy has, and positions that other strategies do not have.
  std::string dropped_text(std::vector<std::string> kept) const {
    if (!any_choice_is(config_, Property::own_pace))
      for (const auto& [dataset, words] : {std::pair{"positions/steps", "positions of single replicas"},
                                           std::pair{"positions/open", "draws of the queue"}})
        if (reader_.has(dataset)) kept.emplace_back(words);
    if (reader_.has("exchange/choice")) kept.emplace_back("the choice of an algorithm");
    return kept.empty() ? "nothing dropped" : fmt::format("{} dropped", fmt::join(kept, ", "));
  }

  const Config& config_;
  const h5::Reader& reader_;
  const std::optional<Config>& source_;
  std::vector<std::string> texts_;
};

}  // namespace

TakeUp take_up(const Config& config, const RunPlan& plan) {
  const SavedCheckpoint source = find_source(config);
  const h5::Reader reader(source.path);
  TakeUp taken;
  taken.checkpoint = source.path;
  taken.written_at = source.step;
  taken.weights_only = config.run.resume_weights_only;
  require_same_model(config, reader, plan.graph);
  if (taken.weights_only) return taken;
  require_same_steps(config, reader, source.step, plan);
  UnusedState(config, reader, config_of(source)).decide(taken);
  return taken;
}

std::string take_up_text(const TakeUp& taken) {
  if (taken.weights_only)
    return fmt::format("from step 0 with the weights of another run, at its step {}: {}", taken.written_at,
                       taken.checkpoint);
  return fmt::format("from step {} of another run: {}{}", taken.written_at, taken.checkpoint,
                     taken.left_out.empty() ? "" : "; " + taken.left_out);
}

std::string other_runs_text(const Config& config) {
  const std::string own = run_path(config);
  std::string newest;
  fs::file_time_type at;
  std::int64_t step = 0, others = 0;
  std::error_code error;
  for (fs::directory_iterator entry(fs::path(own).parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string run = entry->path().string();
    if (run == own || !entry->path().filename().string().starts_with("run-")) continue;
    const auto found = glance_at_newest(run + "/checkpoints");
    if (!found) continue;
    std::error_code gone;
    const fs::file_time_type written = fs::last_write_time(found->path, gone);
    ++others;
    if (!newest.empty() && (gone || written <= at)) continue;
    newest = run, at = written, step = found->step;
  }
  if (newest.empty()) return {};
  return fmt::format("{} has a checkpoint of step {}, from another config{}: --set run.resume_from={} starts from it",
                     newest, count_text(step), others > 1 ? fmt::format(" (as have {} more runs)", others - 1) : "",
                     newest);
}

}  // namespace echelon::inline run
