// SPDX-License-Identifier: Apache-2.0
// Which labels count in the loss, and how much: model.ignore_label, model.class_weights and model.inverse_frequency.
//
// The loss of a step is the sum of weight times loss over the labels that count, divided by the sum of their weights in
// the global batch (PyTorch's CrossEntropyLoss with weight and ignore_index). The divisor follows from whole counts,
// which any number of replicas adds to the same bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace echelon::inline data {

struct LabelWeights {
  std::vector<std::int32_t> ignored;  // labels that do not count; they need not be classes
  std::vector<double> by_class;       // empty: every class weighs 1

  bool any() const { return !ignored.empty() || !by_class.empty(); }
  bool ignores(std::int32_t label) const { return std::find(ignored.begin(), ignored.end(), label) != ignored.end(); }
  double of(std::int32_t label) const { return by_class.empty() ? 1 : by_class[static_cast<std::size_t>(label)]; }

  // The labels of a batch that count are counted by class, or together if all weigh 1.
  std::size_t counts() const { return std::max<std::size_t>(1, by_class.size()); }
  std::size_t count_of(std::int32_t label) const { return by_class.empty() ? 0 : static_cast<std::size_t>(label); }
  // Returns the sum of the weights of so many labels.
  double sum(std::span<const double> counted) const {
    double all = 0;
    for (std::size_t c = 0; c < counted.size(); ++c) all += counted[c] * (by_class.empty() ? 1 : by_class[c]);
    return all;
  }
};

// Returns (mean count / count of the class) ^ exponent by class, times a factor that makes the mean over all labels 1.
// A class without labels weighs as much as the rarest one that has some.
inline std::vector<double> inverse_frequency_weights(std::span<const std::int64_t> counts, double exponent) {
  std::int64_t all = 0, rarest = 0;
  for (const std::int64_t count : counts) {
    all += count;
    if (count > 0) rarest = rarest == 0 ? count : std::min(rarest, count);
  }
  std::vector<double> weights;
  double mean = 0;
  for (const std::int64_t count : counts) {
    weights.push_back(std::pow(static_cast<double>(all) / static_cast<double>(std::max(count, rarest)), exponent));
    mean += weights.back() * static_cast<double>(count) / static_cast<double>(all);
  }
  for (double& weight : weights) weight /= mean;
  return weights;
}

}  // namespace echelon::inline data
