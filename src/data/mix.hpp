// SPDX-License-Identifier: Apache-2.0
// Training samples mixed with another sample of the same step: mixup (Zhang et al. 2018) and CutMix (Yun et al. 2019).
//
// The other sample is drawn from all that count in the step, over all replicas, in the order of their ids, where
// replicas share one order of samples (SamplePlan, `record`); from those of the replica's own batch else. It is
// augmented as in its own place. All draws are hashes of (seed, epoch, sample id), so that a step has the same samples
// for any number of replicas.
//
//   mixup    x = l x + (1 - l) other                       l of the distribution Beta(alpha, alpha), one per sample
//   cutmix   x = other in a box around a uniform place whose sides are (1 - l)^(1 / axes) of the sample's, cut off at
//            its edges; l is then the share of places outside of the box
//
// The label keeps the weight l, and the other's label has 1 - l.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.hpp"
#include "base/hash_rng.hpp"
#include "base/shape.hpp"
#include "config/augment_keys.hpp"
#include "data/planes.hpp"
#include "data/sample_plan.hpp"

namespace echelon::inline data {

struct Mixture {
  double own = 1;     // l
  bool cuts = false;  // the box is the other's
  Box box;
};

class SampleMixer {
 public:
  SampleMixer(const AugmentKeys& keys, std::uint64_t seed) : keys_(keys), rng_(seed, "mix") {}
  // Returns the ids of the slots that count, sorted.
  static std::vector<std::int64_t> pool(const std::vector<SampleSlot>& slots);
  // Returns the id of the other sample; the own one if the pool is empty.
  std::int64_t other(const std::vector<std::int64_t>& pool, std::int64_t epoch, std::int64_t id) const;
  Mixture mixture(const Shape& shape, std::int64_t epoch, std::int64_t id) const;
  // Mixes `other` into `sample`, both of `shape` and `dtype`.
  static void apply(const Mixture& mixture, void* sample, const void* other, const Shape& shape, DType dtype);

 private:
  HashRng draws(std::int64_t epoch, std::int64_t id) const {
    return rng_.at(static_cast<std::uint64_t>(epoch)).at(static_cast<std::uint64_t>(id));
  }
  AugmentKeys keys_;
  HashRng rng_;
};

// A draw of Beta(alpha, alpha) from two gamma variables (Marsaglia, Tsang 2000).
double beta_draw(const HashRng& draws, double alpha);

}  // namespace echelon::inline data
