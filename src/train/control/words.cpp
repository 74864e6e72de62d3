// SPDX-License-Identifier: Apache-2.0
#include "train/control/words.hpp"

#include <algorithm>
#include <cmath>

namespace echelon::inline train {

ControlSum ControlSum::of(int rank, const ControlWords& words) {
  ControlSum sum;
  sum.loss = words.loss;
  sum.weight = words.weight;
  sum.most_steps = words.step;
  sum.largest_drift = words.drift;
  if (words.last.compute_s >= 0) {
    sum.fastest_s = sum.slowest_s = words.last.compute_s;
    sum.slowest_rank = rank;
  }
  if (!std::isfinite(words.loss)) {
    sum.not_finite_rank = rank;
    sum.not_finite_loss = words.loss;
  } else if (words.diverged_loss != 0) {
    sum.not_finite_rank = rank;
    sum.not_finite_loss = words.diverged_loss;
  }
  sum.wishes = words.wishes();
  return sum;
}

ControlSum ControlSum::merged(const ControlSum& other) const {
  ControlSum sum = *this;
  sum.loss += other.loss;
  sum.weight += other.weight;
  sum.largest_drift = std::max(sum.largest_drift, other.largest_drift);
  sum.most_steps = std::max(sum.most_steps, other.most_steps);
  if (other.slowest_s > slowest_s) sum.slowest_s = other.slowest_s, sum.slowest_rank = other.slowest_rank;
  if (fastest_s < 0 || (other.fastest_s >= 0 && other.fastest_s < fastest_s)) sum.fastest_s = other.fastest_s;
  if (not_finite_rank < 0) sum.not_finite_rank = other.not_finite_rank, sum.not_finite_loss = other.not_finite_loss;
  sum.wishes = static_cast<int>(wishes) | static_cast<int>(other.wishes);
  return sum;
}

}  // namespace echelon::inline train
