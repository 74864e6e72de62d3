// The device memory that a rank takes for its part of a model, known before the run: arenas, optimiser and programs are
// built as the run would build them, on a device that counts what is allocated and holds none of it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/batch_plan.hpp"
#include "config/schema.hpp"
#include "device/device.hpp"
#include "model/graph.hpp"
#include "parallel/split.hpp"

namespace echelon::inline parallel {

// A device of this kind that counts what is allocated and holds none of it. EnvironmentError where there is no such
// device here.
std::unique_ptr<Device> counting_device(const DeviceConfig& config);

struct SampleCounts {
  std::int64_t train = 0;
  std::int64_t test = 0;  // 0: no evaluation
};

// What a rank runs at a time: it decides how many programs there are, and how large.
struct RankBatches {
  std::vector<std::int64_t> micro = {1};  // samples in a micro-batch, of each replica that the rank stands for
  std::int64_t accumulation = 1;          // micro-batches of each of them in a step; BatchPlan::accumulation
  std::int64_t evaluation = 0;            // samples in a batch of test data; 0: no evaluation

  std::int64_t largest() const;
};
// The rank of the replica with the largest micro-batch. `test_samples` 0: no test data.
RankBatches busiest_batches(const Config& config, const BatchPlan& batch, int replicas, std::int64_t test_samples);

// Bytes.
struct Footprint {
  double weights = 0, gradients = 0, optimiser = 0;
  double activations = 0, scratch = 0;
  double evaluation = 0;        // the program of the test data, all of it
  double packed = 0;            // that ops keep for themselves: weights in a layout of their own
  double transfer_buffers = 0;  // for what travels between the ranks of a model that may lie on several hosts
  bool estimated = false;  // no such device is here: activations are twice the values (once in evaluation), scratch and
                           // packed are unknown

  double total() const {
    return weights + gradients + optimiser + activations + scratch + evaluation + packed + transfer_buffers;
  }
};

// Of a whole model. `by_length`: the graphs of training where they differ in the lengths of sequences (data.buckets).
Footprint footprint_of(const Config& config, const Graph& graph, const RankBatches& batches,
                       const std::vector<const Graph*>& by_length = {});
// Of the part at these coordinates.
Footprint footprint_of(const Config& config, const Part& part, const MeshCoord& coord, const RankBatches& batches);

}  // namespace echelon::inline parallel
