// The figures of an attempt at its end: collected over the ranks, written as summary.json (the record that reports
// read; figures in report/figures.hpp), and printed as a few lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "comm/links/link_waits.hpp"
#include "config/schema.hpp"
#include "device/device.hpp"
#include "exchange/staleness.hpp"
#include "exchange/strategy.hpp"
#include "job/launch.hpp"
#include "job/run_folder.hpp"
#include "parallel/rank_groups.hpp"
#include "report/figures.hpp"
#include "report/status.hpp"
#include "train/hooks/statistics.hpp"
#include "train/run_plan.hpp"
#include "train/stepper.hpp"

namespace echelon::inline run {

struct SummaryParts {
  const Config& config;
  const RunPlan& plan;
  RankGroups& rank_groups;
  const Provenance& provenance;
  const RunFolder& folder;
  const HostSlot& slot;
  Device& device;
  const Arenas& arenas;
  const Strategy& strategy;
  const StatisticsHook& statistics;
  const Stepper& runner;
  const ActivationExchange& activation_exchange;
  CardRates card;          // since the first step
  const LinkWaits& waits;  // likewise, on rank 0
  const RunState& at;
  const std::string& checksum_at_start;  // of the rank's weights
  int threads = 1;
};

// Collective over the world, then over `peers` (the workers, or the servers on ranks of their own), blocking. Complete
// on rank 0 alone. `staleness`: by worker, of all servers together.
RunFigures collect_summary(const SummaryParts& parts, Group& world, Group& peers,
                           const std::vector<StalenessTally>& staleness, const std::string& state, std::int64_t step);
// Writes summary.json of the attempt, whole or not at all. Rank 0. EnvironmentError.
void write_summary(const RunFigures& run, const SummaryParts& parts);
// Of a run at a pace (device.pace_ms): the ranks of which more than 1 step in 20 took longer than that; "" for none.
std::string pace_warning(const RunFigures& run, std::int64_t steps);
// The last lines of a run's log; `checkpoint`: the newest, relative to the run folder, "" for none.
std::string summary_text(const RunFigures& run, const SummaryParts& parts, const std::string& checkpoint);

}  // namespace echelon::inline run
