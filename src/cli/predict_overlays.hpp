// SPDX-License-Identifier: Apache-2.0
// The pictures of the first samples that `predict` writes for models with a class for every place.
#pragma once

#include <string>

#include "cli/opened_model.hpp"
#include "inference/inference.hpp"

namespace echelon::cli {

class PredictOverlays {
 public:
  // `wanted`: number of samples; -1: a few if the model has a class for every place. `out`: the file of predictions,
  // beside which the pictures are written. ConfigError if samples are wanted and cannot be drawn.
  PredictOverlays(const OpenedData& opened, std::int64_t wanted, const std::string& out);

  // Keeps the predictions of the samples that are drawn.
  void take(const InferenceBatch& batch);
  // Reads these samples again, writes <out without suffix>-<id>.png, and prints their names. DataError if a file cannot
  // be written.
  void write() const;

 private:
  const OpenedData& opened_;
  std::string stem_;
  std::int64_t count_ = 0;
  std::vector<std::int32_t> classes_;  // (count, places)
};

}  // namespace echelon::cli
