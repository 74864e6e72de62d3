// SPDX-License-Identifier: Apache-2.0
// The device memory that a rank needs for its part of a model, computed before the run: arenas, optimiser and programs
// are built as the run builds them, on a device that counts allocations and makes none.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/exchange_arenas.hpp"
#include "config/batch_plan.hpp"
#include "config/schema.hpp"
#include "device/device.hpp"
#include "model/graph.hpp"
#include "parallel/split.hpp"

namespace echelon::inline parallel {

// Opens a device of this kind that counts allocations and makes none. A GPU builds the ops nevertheless, because only
// its libraries know their workspaces: `index` selects it. EnvironmentError if this machine has no such device.
std::unique_ptr<Device> counting_device(const DeviceConfig& config, int index = 0);

struct SampleCounts {
  std::int64_t train = 0;
  std::int64_t test = 0;  // 0: no evaluation
};

// The batches of a rank, which determine the number of its programs and their sizes.
struct RankBatches {
  std::vector<std::int64_t> micro = {1};  // samples of a micro-batch, for each replica that the rank computes
                                          // (several with data.as_replicas)
  std::int64_t accumulation = 1;          // micro-batches of each replica in a step (BatchPlan::accumulation)
  std::int64_t evaluation = 0;            // samples of a batch of test data; 0: no evaluation
  int replicas = 1;                       // number of replicas of the run
  CountArenas exchange = nullptr;         // counts the memory of strategy and codec; null: nothing is exchanged

  std::int64_t largest() const;
};
// The batches of the rank with the largest micro-batch. `test_samples` 0: there is no test data.
RankBatches busiest_batches(const Config& config, const BatchPlan& batch, int replicas, std::int64_t test_samples,
                            CountArenas exchange);

// Bytes of memory of one rank.
struct Footprint {
  double weights = 0, gradients = 0, optimiser = 0;
  double activations = 0, scratch = 0;
  double evaluation = 0;        // the whole evaluation program
  double strategy = 0;          // arenas of exchange.strategy in addition to weights, gradients and optimiser states
  double packed = 0;            // weights that ops keep in their own layouts
  double uploads = 0;           // batches in transfer to a device that the host cannot access (device/upload.hpp)
  double transfer_buffers = 0;  // transfer_buffer_bytes, if a model group may span several hosts
  double checkpoint = 0;        // the copy of checkpoint.asynchronous, and the data of each replica, of all of them,
                                // in host memory: on rank 0; of split models, on each rank of the first replica
                                // that writes its part; not in total()
  double host = 0;         // memory that strategy and codec keep on the host (comm/exchange_arenas.hpp); not in total()
  bool estimated = false;  // no such device is here: activations are twice the values (once in evaluation), scratch and
                           // packed are unknown

  // Upper bound of the bytes of them that a checkpoint contains, with one replica.
  double saved() const { return weights + optimiser + strategy; }
  double total() const {
    return weights + gradients + optimiser + activations + scratch + evaluation + strategy + packed + uploads +
           transfer_buffers;
  }
};

// For an unsplit model. `by_length`: with data.buckets, the graphs of training, one for each length of sequences;
// empty: only `graph`. Throws what Program throws, without a memory limit.
Footprint footprint_of(const Config& config, const Graph& graph, const RankBatches& batches,
                       const std::vector<const Graph*>& by_length = {});
// Sets the memory that exchange.strategy keeps on a rank, including its part on the host, with this many replicas of an
// unsplit model.
void set_strategy_memory(const Config& config, const ExchangeArenas& arenas, int replicas, Footprint& bytes);
// For a rank of a split model: `part` is the part at the coordinates `coord`. `counting` is a counting_device, which
// can be reused; null: one is opened.
Footprint footprint_of(const Config& config, const Part& part, const MeshCoord& coord, const RankBatches& batches,
                       Device* counting = nullptr);

}  // namespace echelon::inline parallel
