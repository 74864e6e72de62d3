// SPDX-License-Identifier: Apache-2.0
// Answers for runs that no study planned. For each experiment that ran on several numbers of ranks, the answer is the
// headline of the verdict (verdict.hpp). Runs with the same exchange, codec, mesh and number of ranks count as the
// repetitions of one setting, in the order of their seeds. The goal and the costs come from their config.
#pragma once

#include <string>
#include <vector>

#include "report/record.hpp"

namespace echelon::inline report {

// Returns sentences. With several experiments, each sentence begins with the model. Reads metrics.jsonl and wire.json
// of the runs.
std::vector<std::string> answers_of(const std::vector<RunRecord>& counted);

}  // namespace echelon::inline report
