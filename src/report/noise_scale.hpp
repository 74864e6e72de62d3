// SPDX-License-Identifier: Apache-2.0
// The simple gradient noise scale (McCandlish et al. 2018, "An Empirical Model of Large-Batch Training", appendix A),
// in samples: the trace of the covariance of one sample's gradient over the squared norm of the mean gradient. Batches
// far below it gain in proportion from more samples; batches far above it hardly gain.
#pragma once

namespace echelon::inline report {

// Sums over steps of means over replicas. For both kinds of mean, E |mean of b samples|^2 = |G|^2 + S / b.
struct NoiseSums {
  double steps = 0;
  double own = 0, own_inverse = 0;    // |mean over a replica's samples|^2, and 1 / number of samples
  double mean = 0, mean_inverse = 0;  // the same over the samples of all replicas
};

// Returns S / |G|^2. NaN if both means cover equally many samples (one replica), or if noise hides G: |G|^2 <= 0.
double noise_scale(const NoiseSums& sums);

}  // namespace echelon::inline report
