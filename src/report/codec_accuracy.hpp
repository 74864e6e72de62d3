// What lossy codecs cost: test accuracy of coded runs beside runs of the same experiment without a codec.
#pragma once

#include <string>
#include <vector>

#include "report/record.hpp"

namespace echelon::inline report {

// A warning for each codec (with its settings, on so many ranks) whose median test accuracy is more than a point, 0.01,
// below the median without one. Compared are runs of one experiment (record.hpp) that trained for as long; runs without
// a codec on the same number of ranks where there are any, else on all. Paced runs learn nothing and do not count.
std::vector<std::string> codec_warnings(const std::vector<RunRecord>& runs);

}  // namespace echelon::inline report
