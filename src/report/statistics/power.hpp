// SPDX-License-Identifier: Apache-2.0
// The power of a paired t test: the probability that it finds an effect. Pure functions.
#pragma once

namespace echelon::inline report {

inline constexpr double kPower = 0.9;
inline constexpr int kMostPairs = 1000;

// Returns the probability that a one-sided t test at this level shows an effect (the distance of the true mean from the
// threshold) with n >= 2 pairs whose differences have this standard deviation. Computes the noncentral t distribution
// by integrating over the chi distribution of the spread. Error below 1e-4.
double power_of(double effect, double sd, int n, double level);

// Returns the fewest pairs, at least `least`, with which the test finds the effect with probability kPower; kMostPairs
// + 1 if more are needed or the effect is not above 0.
int pairs_to_find(double effect, double sd, double level, int least);

}  // namespace echelon::inline report
