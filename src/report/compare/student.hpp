// SPDX-License-Identifier: Apache-2.0
// Student's t distribution. Pure functions, callable from any thread.
#pragma once

namespace echelon::inline report {

// P(T <= t) with `freedom` > 0 degrees of freedom, infinity for the normal distribution; error below 1e-10.
double student_below(double t, double freedom);

// Returns the t for which student_below(t, freedom) = p, with p in (0, 1); relative error below 1e-9.
double student_quantile(double p, double freedom);

}  // namespace echelon::inline report
