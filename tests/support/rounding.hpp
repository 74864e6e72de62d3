// How far apart two computations of one thing may be in f32 that add in different orders.
#pragma once

#include <algorithm>
#include <limits>

namespace echelon::test {

// From `floor`, the relative distance that rounding alone makes there: measured in the same test between two
// computations that are both right (samples reversed, or plain loops). Roundings accumulate like a random walk and are
// amplified alike, so that a third one is as far, give or take a small factor: ten. By luck a floor may be 0; then a
// few roundings of the result itself count.
inline double rounding_bound(double floor) { return 10 * std::max(floor, 4.0 * std::numeric_limits<float>::epsilon()); }

}  // namespace echelon::test
