// How much a training loss oscillates: what stale updates add to the noise of batches.
#pragma once

#include <vector>

namespace echelon::inline report {

// Root mean square of the loss about its running mean over 51 rows, in the second half of the rows. A row: steps that
// follow each other until they hold `samples_a_row`, so that replicas that step by themselves are compared with those
// that step together. `losses` and `samples` by step; losses that are not finite are left out. NaN for fewer than 102
// rows. O(steps).
double loss_oscillation(const std::vector<double>& losses, const std::vector<double>& samples, double samples_a_row);

}  // namespace echelon::inline report
