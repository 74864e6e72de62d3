// SPDX-License-Identifier: Apache-2.0
// Bounds the distance in f32 between two computations of the same thing that add in different orders.
#pragma once

#include <algorithm>
#include <limits>

namespace echelon::test {

// `floor` is the relative distance that rounding alone causes, measured in the same test between two computations that
// are both right (samples reversed, or plain loops). Roundings accumulate like a random walk and are amplified alike,
// so a third computation is about as far away; the bound allows a factor of ten. By luck a floor may be 0; then a few
// roundings of the result itself count.
inline double rounding_bound(double floor) { return 10 * std::max(floor, 4.0 * std::numeric_limits<float>::epsilon()); }

}  // namespace echelon::test
