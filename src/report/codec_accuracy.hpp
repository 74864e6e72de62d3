// SPDX-License-Identifier: Apache-2.0
// Test accuracy lost to lossy codecs, compared with runs of the same experiment without one.
#pragma once

#include <string>
#include <vector>

#include "report/record.hpp"

namespace echelon::inline report {

// Returns a warning for each pair (codec with its settings, number of ranks) whose mean test accuracy is more than 0.01
// below that without a lossy codec, if a paired t test over seeds (95 %) shows the difference. Fewer than 3 pairs of
// seeds show nothing, and the warning says so. Runs are compared within one experiment (record.hpp) and with equal
// epochs and steps, with runs without a codec on the same number of ranks if there are any, else on any number. Paced
// runs and runs without an accuracy do not count.
std::vector<std::string> codec_warnings(const std::vector<RunRecord>& runs);

}  // namespace echelon::inline report
