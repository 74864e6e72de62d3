// A trained model over a data set: predictions, loss, accuracy, and how long a batch takes.
//
// Several ranks take the batches of one rank in turn: batch b is rank b mod k's. Every batch's sums are added in the
// order of batches, so that any number of ranks with equal devices and threads finds the same bits. Text that is read
// in streams (data.order = "stream"), whose rows carry a state from batch to batch, is rank 0's alone.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "checkpoint/saved_model.hpp"
#include "comm/engine.hpp"
#include "data/dataset.hpp"
#include "data/sample_plan.hpp"
#include "model/program.hpp"

namespace echelon::inline inference {

// Of one pass.
struct InferenceBatch {
  std::vector<std::int64_t> ids;     // of the samples, by number in the data set
  Shape shape;                       // of one sample's outputs: (K), (T, K)
  std::vector<float> outputs;        // (ids, ..): probabilities of classes, else the values; empty where not asked for
  std::vector<std::int32_t> chosen;  // the likeliest class of each row of K; empty for values
};

struct InferenceSummary {
  std::int64_t samples = 0;
  int ranks = 1;                  // that took part
  LossSums sums;                  // over the labels that the data has; of weight 0 where it has none
  std::vector<double> latencies;  // seconds of a pass, sorted: input, forward, output
  double latency(double part) const;
};

struct InferenceOptions {
  Engine* ranks = nullptr;  // null: this process alone
  bool outputs = false;     // probabilities too, where classes are chosen
  // Called on rank 0 for every batch, in the order of samples (of streams: of batches). Empty: nothing is collected.
  std::function<void(const InferenceBatch&)> take{};
};

// The batches of config.evaluate.batch samples in order, dealt out to as many of `ranks` as there are batches for; in
// streams where the model was trained in them.
SamplePlan inference_plan(const Dataset& data, const Config& config, int ranks);

// Collective over the ranks; all return the same summary.
InferenceSummary infer(LoadedModel& model, const Dataset& data, const Config& config, const InferenceOptions& options);

}  // namespace echelon::inline inference
