// All that follows from the config, the data and the number of ranks before any memory is touched: what every rank
// works out for itself and agrees on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/derive.hpp"
#include "config/schema.hpp"
#include "data/dataset.hpp"
#include "data/loader.hpp"
#include "data/shard_plan.hpp"
#include "model/graph.hpp"
#include "parallel/mesh.hpp"
#include "parallel/split.hpp"

namespace echelon {

struct RunPlan {
  int replicas = 1;  // that there are; servers on ranks of their own are none
  BatchPlan batch;   // by replica of the plan: those, or data.as_replicas where one stands for several
  Dataset train;
  std::optional<Dataset> test;
  ShardPlan shards;
  Graph graph;                                  // for the longest sequences
  std::map<std::int64_t, Graph> bucket_graphs;  // by the length that a step's sequences are padded to (data.buckets)
  Part part;                                    // what this rank runs of `graph`
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;  // of the whole run, earlier attempts included

  // The whole model in steps whose sequences are padded to `bucket` (ShardPlan::length).
  const Graph& whole_for(std::int64_t bucket) const { return bucket > 0 ? bucket_graphs.at(bucket) : graph; }
  // What this rank runs in steps whose sequences are padded to `bucket`.
  const Graph& graph_for(std::int64_t bucket) const { return bucket > 0 ? bucket_graphs.at(bucket) : part.graph; }
  // Labels come one a token, and so do loss, accuracy and weight.
  bool per_token() const { return train.form().label.rank() > 0 && train.classes > 0; }
  // Replicas whose samples this one takes: its own, or all of the plan's where it stands for them; a server's: none.
  std::vector<int> sources(int replica) const;
};

// `costs` of layers, by which stages are chosen; none: counted FLOPs. Throws ConfigError (more replicas than samples,
// batch arithmetic, model, stages) and DataError.
RunPlan plan_run(const Config& config, const Mesh& mesh, const MeshSeat& seat, const std::vector<double>& costs = {});

// A graph for each length that steps are padded to (data.buckets). All share the arenas with `graph`: ConfigError where
// their parameters would differ.
std::map<std::int64_t, Graph> graphs_of(const Config& config, const Dataset& train, const ShardPlan& shards,
                                        const Graph& graph);
// ConfigError where data that are no images are to be moved and mirrored.
void check_augmentation(const Config& config, const Dataset& train);
// ConfigError where optimizer.lazy has no sparse embedding to be lazy about.
void check_sparse(const Config& config, const ParameterSet& parameters);

// The plan of a whole pass over the test data by up to `ranks` ranks; its replicas() are those that take part. In
// order, `batch` samples on each a step, the last ones filled up with weight 0; or in streams, `batch` of them over all
// ranks, so that every number of ranks reads the same.
ShardPlan evaluation_plan(const Dataset& dataset, const Config& config, int ranks);
// Samples in the largest batch, of training or evaluation, that any replica runs at once.
std::int64_t largest_batch(const Config& config, const RunPlan& plan);
// How one of its replicas reads: everything once.
LoaderOptions evaluation_loading(const Config& config, DType dtype, int replica = 0);

}  // namespace echelon
