// How likely a paired t test is to find an effect. Pure functions.
#pragma once

namespace echelon::inline report {

inline constexpr double kPower = 0.9;
inline constexpr int kMostPairs = 1000;

// Probability that a one-sided t test at this level shows an effect (the distance of the true mean from the threshold)
// with n pairs whose differences have this standard deviation: the noncentral t distribution, by the integral over the
// chi distribution of the spread. Error below 1e-4. n >= 2.
double power_of(double effect, double sd, int n, double level);

// The fewest pairs, at least `least`, with which the test finds the effect with kPower; kMostPairs + 1 where more are
// needed, or the effect is not above 0.
int pairs_to_find(double effect, double sd, double level, int least);

}  // namespace echelon::inline report
