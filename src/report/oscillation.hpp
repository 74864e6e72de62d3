// How much a training loss oscillates: what stale updates add to the noise of batches.
#pragma once

#include <vector>

namespace echelon::inline report {

// Root mean square of the losses about their running mean over 51 of them, in their second half. Losses that are not
// finite are left out. NaN for fewer than 102. O(steps).
double loss_oscillation(std::vector<double> losses);

}  // namespace echelon::inline report
