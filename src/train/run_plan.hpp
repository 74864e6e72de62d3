// SPDX-License-Identifier: Apache-2.0
// The plan of a run: all that follows from the config, the data and the number of ranks before any memory is allocated.
// Every rank works it out for itself, with the same result, and `echelon check` prints it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/batch_plan.hpp"
#include "config/roles.hpp"
#include "config/schema.hpp"
#include "data/dataset.hpp"
#include "data/loader.hpp"
#include "data/sample_plan.hpp"
#include "model/graph.hpp"
#include "parallel/footprint.hpp"
#include "parallel/mesh.hpp"
#include "parallel/split.hpp"

namespace echelon::inline train {

// Data and model of a run, opened and built once.
struct RunInputs {
  Dataset train;
  std::optional<Dataset> test;
  Graph graph;  // the whole model, for the longest sequences

  SampleCounts samples(const DataConfig& data) const { return {samples_used(train, data), test ? test->samples() : 0}; }
};

// Throws DataError, and ConfigError where data and model do not fit the config or each other.
RunInputs open_inputs(const Config& config);

// The workers of a launch as a mesh. `hosts`: host index by rank of the launch. Throws ConfigError where groups do not
// fit.
Mesh mesh_of_workers(const Config& config, const Roles& roles, std::vector<int> hosts,
                     const std::vector<std::string>& host_names);

struct RunPlan {
  int replicas = 1;  // that there are; servers on ranks of their own are none
  BatchPlan batch;   // by replica of the plan: those, or data.as_replicas where one stands for several
  Dataset train;
  std::optional<Dataset> test;
  SamplePlan shards;
  Graph graph;                                  // for the longest sequences
  std::map<std::int64_t, Graph> bucket_graphs;  // by the length that a step's sequences are padded to (data.buckets)
  std::vector<double> node_costs;               // by node of `graph`: by these, stages are chosen
  Part part;                                    // what this rank runs of `graph`
  RankBatches rank_batches;                     // of the rank with the largest ones
  std::int64_t steps_per_epoch = 0;             // SamplePlan::steps_per_epoch
  std::int64_t total_steps = 0;                 // of the whole run, earlier attempts included

  // The whole model in steps whose sequences are padded to `bucket` (SamplePlan::length).
  const Graph& whole_for(std::int64_t bucket) const { return bucket > 0 ? bucket_graphs.at(bucket) : graph; }
  // The graph that this rank runs in steps whose sequences are padded to `bucket`.
  const Graph& graph_for(std::int64_t bucket) const { return bucket > 0 ? bucket_graphs.at(bucket) : part.graph; }
  // The part of `graph` that the rank at other coordinates runs. Throws ConfigError as plan_run does.
  Part part_at(const ParallelConfig& parallel, const MeshCoord& coord) const;
  // Memory of a rank that runs `part` at `coord`.
  Footprint memory_of(const Config& config, const Part& part, const MeshCoord& coord) const;
  // True if each token has a label, so that loss, accuracy and weight are per token.
  bool per_token() const { return train.predicts_tokens(); }
  // The number of labels that count in an epoch, over all replicas. O(steps of an epoch).
  double weight_of_epoch(std::int64_t epoch) const;
  // Replicas whose samples this one takes: its own, or all of the plan's where it stands for them; a server's: none.
  std::vector<int> sources(int replica) const;
};

// The plan of the rank at `coord`. `costs` by node of the graph, by which stages are chosen; none: counted FLOPs.
// Throws ConfigError (more replicas than samples, batch arithmetic, buckets, stages).
RunPlan plan_run(const Config& config, const Mesh& mesh, const MeshCoord& coord, RunInputs inputs,
                 std::vector<double> costs = {});

// The plan of a whole pass over the test data by up to `ranks` ranks; its replicas() are those that take part. In
// order, `batch` samples on each a step, the last ones filled up with weight 0; or in streams, `batch` of them over all
// ranks, so that every number of ranks reads the same.
SamplePlan evaluation_plan(const Dataset& dataset, const Config& config, int ranks);
// The same plan for a single rank, in batches of the size that each of `ranks` would take; streams have all rows in one
// batch.
SamplePlan lone_evaluation_plan(const Dataset& dataset, const Config& config, int ranks);
// The same over the share evaluate.train_fraction of the training data that is used, in `batches` by rank, or by fewer
// ranks where it has fewer samples.
SamplePlan training_evaluation_plan(const Dataset& train, const Config& config, std::vector<std::int64_t> batches);
// How a replica's training samples are read and changed, in f32.
LoaderOptions training_loading(const Config& config);
// The loading of one of its replicas, which reads everything once.
LoaderOptions evaluation_loading(const Config& config, DType dtype, int replica = 0);

}  // namespace echelon::inline train
