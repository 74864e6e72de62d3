// The simple gradient noise scale (McCandlish et al. 2018, "An Empirical Model of Large-Batch Training", appendix A):
// the trace of the covariance of one sample's gradient over the squared norm of the mean gradient, in samples. Batches
// far below it gain from more samples in proportion, batches far above it hardly.
#pragma once

namespace echelon::inline report {

// Sums over steps, means over replicas. E |mean of b samples|^2 = |G|^2 + S / b for both kinds of mean.
struct NoiseSums {
  double steps = 0;
  double own = 0, own_inverse = 0;    // |mean over a replica's samples|^2, and the inverse of their number
  double mean = 0, mean_inverse = 0;  // likewise over the samples of all replicas
};

// S / |G|^2. NaN where the two means are of equally many samples (one replica), or the noise hides G: |G|^2 <= 0.
double noise_scale(const NoiseSums& sums);

}  // namespace echelon::inline report
