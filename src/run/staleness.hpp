// SPDX-License-Identifier: Apache-2.0
// The staleness of an asynchronous run's updates: put together over the servers, in the figures of the attempt, and as
// a histogram by worker in staleness.json of its folder.
//
//   {"format": "echelon-staleness", "version": 1,
//    "workers": [{"applied": .., "dropped": .., "mean": .., "largest": .., "waited_s": .., "meeting_s": ..,
//                 "histogram": [[staleness, updates], ..]}, ..]}
//
// An update of a worker is counted once for each part of the model that has a server of its own. waited_s: time that
// answers were held for a slower worker, of the part that was held longest; meeting_s: at meetings, summed over parts.
#pragma once

#include <vector>

#include "comm/group.hpp"
#include "exchange/staleness.hpp"
#include "job/run_folder.hpp"
#include "report/figures.hpp"

namespace echelon::inline run {

// Returns on every rank what the servers on all ranks counted, by worker; empty if nobody counted. Collective.
std::vector<StalenessTally> gather_staleness(const std::vector<StalenessTally>& own, Group& world);

void take_staleness(const std::vector<StalenessTally>& workers, RunFigures& run);

// Writes staleness.json of the attempt, whole or not at all; nothing if nobody counted. Rank 0. EnvironmentError.
void write_staleness(const std::vector<StalenessTally>& workers, const RunFolder& folder);

}  // namespace echelon::inline run
