// The answer of runs that no study planned: of each experiment that ran on several numbers of ranks, the headline of
// the verdict (verdict.hpp). Runs of one exchange, codec, mesh and number of ranks are the repetitions of a setting, in
// the order of their seeds; the goal and the costs are those of their config.
#pragma once

#include <string>
#include <vector>

#include "report/record.hpp"

namespace echelon::inline report {

// Sentences; each begins with the model where there are several experiments. Reads metrics.jsonl and wire.json of the
// runs.
std::vector<std::string> answers_of(const std::vector<RunRecord>& counted);

}  // namespace echelon::inline report
