// What is known at the end of an attempt: collected over the ranks, written as summary.json (the record that reports
// read; its figures are in report/figures.hpp), and told in a few lines.
#pragma once

#include <cstdint>
#include <string>

#include "comm/group.hpp"
#include "config/schema.hpp"
#include "device/device.hpp"
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
  const Device& device;
  const Arenas& arenas;
  const Strategy& strategy;
  const StatisticsHook& statistics;
  const Stepper& runner;
  const ActivationExchange& activation_exchange;
  int threads = 1;
};

// All ranks call it; `peers`: the workers, or the servers on ranks of their own. Whole on rank 0.
RunFigures collect_summary(const SummaryParts& parts, Group& world, Group& peers, const std::string& state,
                           std::int64_t step);
void write_summary(const RunFigures& run, const SummaryParts& parts);
// A few lines for people.
std::string summary_text(const RunFigures& run, const SummaryParts& parts, const std::string& checkpoint);

}  // namespace echelon::inline run
