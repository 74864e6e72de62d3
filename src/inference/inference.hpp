// SPDX-License-Identifier: Apache-2.0
// Runs a trained model over a data set: predictions, loss, accuracy, and the time per batch.
//
// Batches are dealt to ranks in turn: batch b to rank b mod k. The sums of batches are added in the order of batches,
// so that any number of ranks with equal devices and threads gets the same bits. Text that is read in streams
// (data.order = "stream"), whose rows keep a state from batch to batch, is processed only by rank 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/saved_model.hpp"
#include "comm/engine.hpp"
#include "data/dataset.hpp"
#include "data/sample_plan.hpp"
#include "model/program.hpp"
#include "train/class_counts.hpp"
#include "train/value_counter.hpp"

namespace echelon::inline inference {

// The values of a tensor of the model for the samples of a batch, in the dtype of the weights.
struct LayerValues {
  std::string name;              // in the graph
  Shape shape;                   // of one sample: (K), (T, K), (K, H, W)
  DType dtype = DType::f32;      // or f64
  std::vector<std::byte> bytes;  // (n, shape); may be empty if not requested
  double at(std::size_t index) const {
    return dtype == DType::f64 ? reinterpret_cast<const double*>(bytes.data())[index]
                               : static_cast<double>(reinterpret_cast<const float*>(bytes.data())[index]);
  }
};

// Results of one forward pass.
struct InferenceBatch {
  std::vector<std::int64_t> ids;     // ids of the samples in the data set, (n)
  Shape places;                      // shape of a sample's classes: (), (T), (H, W)
  std::vector<std::int32_t> chosen;  // most probable class of each row of K, (n, places); empty for values
  LayerValues outputs;               // softmax of the logits, or the values
  std::vector<LayerValues> layers;   // those of InferenceOptions::layers
};

struct InferenceSummary {
  std::int64_t samples = 0;
  int ranks = 1;                      // ranks that took part
  LossSums sums;                      // over all labels; weight 0 if the data have none
  ClassCounts classes;                // only for labels that are classes
  ValueFigures values;                // only for outputs that are numbers
  double accuracy = 0;                // of the labels that count; those of weighted classes count alike
  std::vector<double> latencies;      // seconds of each pass, sorted: copying the input, forward, copying the output
  double latency(double part) const;  // quantile `part` in [0, 1], the nearest rank; 0 without passes
};

struct InferenceOptions {
  Engine* ranks = nullptr;  // null: this process alone
  bool confusion = false;   // `classes` holds a confusion matrix if there are at most ClassCounts::kMostConfused
  bool outputs = false;     // sends outputs of other ranks too if there are classes; values are always sent
  std::vector<std::string> layers{};  // whose outputs `take` gets (demand_layers)
  // Called on rank 0 for every batch in the order of samples (for streams, of batches). Empty: nothing is collected.
  std::function<void(const InferenceBatch&)> take{};
};

// Throws ConfigError, with the nearest name, unless each of these names a tensor of real numbers that a layer computes.
void demand_layers(const Graph& graph, const std::vector<std::string>& layers);

// Returns a plan of batches of config.evaluate.batch samples in order, dealt to at most `ranks` ranks, each with at
// least one batch; in streams if the model was trained in streams.
SamplePlan inference_plan(const Dataset& data, const Config& config, int ranks);

// Returns the samples of a rank in a step of that plan, without samples that only fill it up.
std::vector<std::int64_t> counted_ids(const SamplePlan& plan, std::int64_t step, int rank);

// Collective over the ranks and blocking; all return the same summary. Each rank repeats its first pass as an untimed
// warm-up. With `take`, ranks send each batch to rank 0: n (rows of K) classes of 4 bytes, and outputs and layers if
// requested. Throws DataError for shards that cannot be read, MemoryError, and errors of the engine.
InferenceSummary infer(LoadedModel& model, const Dataset& data, const Config& config, const InferenceOptions& options);

}  // namespace echelon::inline inference
