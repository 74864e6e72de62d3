// SPDX-License-Identifier: Apache-2.0
// Oscillation of a training loss: measures the noise that stale updates add to that of the batches.
#pragma once

#include <vector>

namespace echelon::inline report {

// Returns the root mean square of the losses about their running mean over 51 losses, in the second half of the series.
// Losses that are not finite are left out. NaN for fewer than 102. O(steps).
double loss_oscillation(std::vector<double> losses);

}  // namespace echelon::inline report
