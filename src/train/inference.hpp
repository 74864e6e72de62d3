// A trained model over a data set: predictions, loss, accuracy, and how long a batch takes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "data/dataset.hpp"
#include "model/program.hpp"
#include "train/saved_model.hpp"

namespace echelon {

// Of one pass.
struct InferenceBatch {
  std::vector<std::int64_t> ids;     // of the samples, by number in the data set
  Shape shape;                       // of one sample's outputs: (K), (T, K)
  std::vector<float> outputs;        // (ids, ..): probabilities of classes, else the values
  std::vector<std::int32_t> chosen;  // the likeliest class of each row of K; empty for values
};

struct InferenceSummary {
  std::int64_t samples = 0;
  LossSums sums;                  // over the labels that the data has
  std::vector<double> latencies;  // seconds of a pass, sorted: input, forward, output
  double latency(double part) const;
};

// Calls `take` for every batch of config.evaluate.batch samples; in streams where the model was trained in them.
// Single process.
InferenceSummary infer(LoadedModel& model, const Dataset& data, const Config& config,
                       const std::function<void(const InferenceBatch&)>& take);

}  // namespace echelon
