// SPDX-License-Identifier: Apache-2.0
// The rate of an attempt: samples that entered the model, of all replicas, over wall time (figures rate_samples and
// rate_s), from the records of all ranks that train.
#pragma once

#include <vector>

#include "comm/group.hpp"
#include "exchange/staleness.hpp"
#include "exchange/strategy.hpp"
#include "report/figures.hpp"
#include "run/ready.hpp"

namespace echelon::inline run {

// Collective over the ranks that train. `staleness`: by worker; of updates that servers dropped no samples count.
void take_rate(const Ready& ready, Group& workers, const std::vector<StalenessTally>& staleness, RunFigures& run);

}  // namespace echelon::inline run
