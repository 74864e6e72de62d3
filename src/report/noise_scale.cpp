// SPDX-License-Identifier: Apache-2.0
#include "report/noise_scale.hpp"

#include "report/figures.hpp"

namespace echelon::inline report {

double noise_scale(const NoiseSums& sums) {
  const double apart = sums.own_inverse - sums.mean_inverse;
  if (!(apart > 0)) return kUnknown;
  const double covariance = (sums.own - sums.mean) / apart;          // S
  const double signal = sums.mean - covariance * sums.mean_inverse;  // |G|^2, in all steps
  return signal > 0 ? covariance * sums.steps / signal : kUnknown;
}

}  // namespace echelon::inline report
