// SPDX-License-Identifier: Apache-2.0
// Errors of outputs that are numbers, over the labels of an evaluation.
//
//   MAE   sum of w |x - t| over sum of w
//   R2    1 - sum of w (x - t)^2 / sum of w (t - mean of t)^2, for each number of a label apart; their mean, as
//         scikit-learn's r2_score. Labels with several axes are one number with a mean for all places. Unknown if the
//         labels of a number are all equal
//
// w is the weight of a label. Sums are kept by batch and added in the order of batches, so that any number of ranks
// finds the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/batch.hpp"
#include "model/graph.hpp"
#include "model/program.hpp"
#include "report/figures.hpp"

namespace echelon::inline train {

struct ValueFigures {
  double mae = kUnknown, r2 = kUnknown;
};

// Keeps the figures that evaluate.metrics names.
ValueFigures chosen_figures(ValueFigures all, const std::vector<std::string>& metrics);

// Fills in the fields test_mae and test_r2 of EpochFigures and RunFigures.
template <class Figures>
void take_value_figures(const ValueFigures& from, Figures& to) {
  to.test_mae = from.mae;
  to.test_r2 = from.r2;
}

// Whether the outputs of this model are numbers in the units of its labels.
bool gives_numbers(const Graph& whole);

class ValueCounter {
 public:
  // `graph`: the whole model, or the part of it that has the loss.
  explicit ValueCounter(const Graph& graph);
  std::size_t sums() const { return static_cast<std::size_t>(columns_) * kSums; }  // values of a batch
  // Writes the sums of a batch after a forward pass; waits for the device. On a rank that has the loss.
  void count(Device& device, const Program& program, const Batch& batch, double* sums);
  // `batches`: the sums of all batches in their order.
  ValueFigures figures(std::span<const double> batches) const;

 private:
  enum Sum : std::uint8_t { kWeight, kAbsolute, kSquare, kLabel, kLabelSquare, kSums };
  static constexpr std::int64_t kMostColumns = 4096;  // of labels with one axis; longer ones are one number

  const Graph& whole_;
  std::int64_t elems_, columns_;
  std::vector<std::byte> host_;
};

}  // namespace echelon::inline train
