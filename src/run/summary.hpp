// SPDX-License-Identifier: Apache-2.0
// The figures of an attempt at its end: collected over the ranks, written as summary.json (the record that reports
// read; figures in report/figures.hpp), and printed as a few lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/links/link_waits.hpp"
#include "exchange/staleness.hpp"
#include "report/figures.hpp"
#include "run/ready.hpp"

namespace echelon::inline run {

// Collective over the world, then over the ranks of this rank's role, blocking. Complete on rank 0 only. `card`: rates
// of the network card since the first step; `waits`: the same for links, on rank 0; `staleness`: by worker, of all
// servers together.
RunFigures collect_summary(const Ready& ready, const CardRates& card, const LinkWaits& waits,
                           const std::vector<StalenessTally>& staleness, const std::string& state);
// Writes summary.json of the attempt, whole or not at all. Rank 0. EnvironmentError.
void write_summary(const RunFigures& run, const Ready& ready);
// In a run at a pace (device.pace_ms), names the ranks of which more than 1 step in 20 took longer; "" for none.
std::string pace_warning(const RunFigures& run, std::int64_t steps);
// Returns the last lines of a run's log. `checkpoint`: the newest, relative to the run folder; "" for none.
std::string summary_text(const RunFigures& run, const Ready& ready, const std::string& checkpoint);

}  // namespace echelon::inline run
