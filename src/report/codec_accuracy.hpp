// Loss of test accuracy by lossy codecs, compared with runs of the same experiment without one.
#pragma once

#include <string>
#include <vector>

#include "report/record.hpp"

namespace echelon::inline report {

// A warning for each (codec with its settings, number of ranks) whose mean test accuracy is more than 0.01 below that
// without a lossy codec, where the difference by seed is shown (paired t, 95 %); fewer than 3 pairs of seeds show
// nothing, and the warning says so. Compared are runs of one experiment (record.hpp) with equal epochs and steps; runs
// without a codec on the same number of ranks where there are any, else on any number. Paced runs and runs without an
// accuracy are not counted.
std::vector<std::string> codec_warnings(const std::vector<RunRecord>& runs);

}  // namespace echelon::inline report
