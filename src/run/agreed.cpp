// SPDX-License-Identifier: Apache-2.0
#include "run/agreed.hpp"

#include <fmt/format.h>

#include "base/checksum.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "config/check_combinations.hpp"
#include "config/differences.hpp"
#include "config/parse.hpp"
#include "config/refuse.hpp"
#include "job/agree.hpp"
#include "job/job_end.hpp"
#include "run/channels.hpp"
#include "run/stage_data.hpp"

namespace echelon::inline run {
namespace {

// Only `echelon train` wraps the transport of a launch for a single run; cells of a study have a shaped network too.
void require_wrapped(const AttemptContext& context, const Config& config) {
  if (!config.fault.inject.empty() && !context.options.faults)
    refuse(config, "fault.inject", "faults are for runs of `echelon train`, not for cells of a study; leave them out");
  if (config.exchange.check_messages && !context.engine.transport().checks_messages())
    refuse(config, "exchange.check_messages",
           "messages are checked in runs of `echelon train`, not in cells of a study; leave it out");
  if (!config.network.rate.empty() && context.engine.transport().shape() == nullptr)
    refuse(config, "network.rate",
           "messages are slowed down only in runs of `echelon train` and in cells of a study; leave it out");
}

void require_steps_after_warmup(std::int64_t warmup_steps, const RunPlan& plan) {
  if (warmup_steps > 1 && warmup_steps >= plan.total_steps)
    throw ConfigError(fmt::format("study.warmup_steps = {} leaves none of the {} of this cell to measure", warmup_steps,
                                  counted(plan.total_steps, "step")));
}

void conclude_before(AttemptContext& context) {
  const std::optional<HandedOver>& before = context.options.before;
  if (!before) return;
  all_or_none(context.group, [&] {
    if (context.is_first()) context.board.conclude("stopped", kExitRequeue, before->reason, before->step);
  });
}

// "batch.global is 96 on rank 0 and 64 on rank 2 (..)", of the first keys.
std::string config_differences(const std::string& first, const std::string& other, std::size_t rank) {
  constexpr std::size_t kShown = 4;
  const std::vector<KeyDifference> keys =
      differing_keys(parse_config(first, "rank 0"), parse_config(other, "another rank"), true);
  std::vector<std::string> texts;
  for (const KeyDifference& key : keys)
    if (texts.size() < kShown)
      texts.push_back(fmt::format("{} is {} on rank 0 and {} on rank {}", key.key, key.left, key.right, rank));
  return fmt::format("{}{}; the config file and the ECHELON_ variables must be the same on every host",
                     fmt::join(texts, ", "),
                     keys.size() > kShown ? fmt::format(" and {} more", keys.size() - kShown) : "");
}

}  // namespace

Settings read_settings(AttemptContext& context) {
  Config asked;
  Settings settings;
  all_or_none(context.group, [&] {
    asked = context.options.load_config(settings.notes);
    check_combinations(asked);
  });
  require_same(context.group, "version", fmt::format("{} ({})", kVersion, commit()));
  require_same(context.group, "config", echo_config(asked), config_differences);
  all_or_none(context.group, [&] {
    settings.config = config_for_ranks(std::move(asked), context.slot.ranks, settings.notes);
    require_wrapped(context, settings.config);
    const int launched = context.options.crew ? context.options.crew->ranks_of_launch() : context.slot.ranks;
    check_soft(settings.config, launched);
    check_faults(settings.config, launched, context.options.threads);
    require_job_end();
  });
  if (context.is_first())
    if (const std::string note = job_end_note(settings.config.run.stop_before_end_s); !note.empty())
      log_warning("{}", note);
  return settings;
}

RunInputs read_inputs(AttemptContext& context, Settings& settings) {
  Config& config = settings.config;
  std::optional<RunInputs> inputs;
  all_or_none(context.group, [&] { inputs.emplace(open_inputs(config)); });
  if (is_unresolved(config.parallel)) {
    settings.split =
        resolve_split(config, *inputs, device_options(config.device, context.slot), context.engine, kControlChannel);
    config.parallel = settings.split.parallel;
  }
  return std::move(*inputs);
}

Agreed agree(AttemptContext& context, const Placed& placed, Settings settings, RunInputs inputs) {
  const Config& config = settings.config;
  const RankGroups& groups = placed.groups;
  std::optional<RunPlan> plan;
  all_or_none(context.group, [&] {
    plan.emplace(plan_run(config, groups.mesh(), groups.coord(), std::move(inputs), settings.split.node_s));
    require_steps_after_warmup(context.options.warmup_steps, *plan);
  });
  RunReplay replay = open_replay(config, *plan, groups.roles(), context.group);
  Decision start = decide_start(config, *plan, context.group, context.lock);
  conclude_before(context);
  std::unique_ptr<StageFolder> staged;
  if (!start.finished) staged = stage_data(config.data, *plan, groups.replica(), context.slot, context.group);
  return {std::move(settings), std::move(*plan), std::move(replay), std::move(start), std::move(staged)};
}

}  // namespace echelon::inline run
