// SPDX-License-Identifier: Apache-2.0
// Counts the labels of a batch by what a program has computed for them.
//
// A softmax loss has the classes of the data; binary cross-entropy has two for all outputs together, "no" (output <= 0)
// and "yes". If each shard of a model (parallel.tensor) holds some of the classes, two sums over the replica's ranks
// give the position of each of n labels: the first of 2 n values per shard, the second of n values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/group.hpp"
#include "config/schema.hpp"
#include "data/batch.hpp"
#include "model/graph.hpp"
#include "model/program.hpp"
#include "train/class_counts.hpp"

namespace echelon::inline train {

// Classes that an evaluation of this model counts; 0: its outputs are values.
std::int64_t classes_of(const Graph& whole);

// Whether evaluate.metrics names this figure, one of classes, or one of numbers.
bool asks_for(const Config& config, std::string_view metric);
bool asks_for_classes(const Config& config);
bool asks_for_values(const Config& config);

// ConfigError where evaluate.metrics asks for figures that a model has none of, or for a matrix of too many classes.
void check_metrics(const Config& config, const Graph& whole);

class ClassCounter {
 public:
  struct Place {
    Group* replica = nullptr;  // of a split model, all ranks of this replica
    bool has_outputs = true;   // this rank's program computes them, or some; of several spatial shards that have all of
                               // them the first
    int shard = 0;             // which of those that share its layers
    bool counts = true;        // into `counts`: one rank a replica, or one for each part of its places
  };
  // `part`: what this rank runs of the model `whole`. Both outlive it.
  ClassCounter(const Graph& whole, const Graph& part, const Place& place);
  ClassCounter(const Graph& whole) : ClassCounter(whole, whole, {}) {}

  // After a forward pass over `batch` whose loss is finite; waits for the device. Collective over the replica's ranks.
  void count(Device& device, const Program& program, const Batch& batch, ClassCounts& counts);

 private:
  struct Rows;  // of a batch
  void find_shards();
  template <class T>
  void count_whole(const T* outputs, const Rows& rows, ClassCounts& counts) const;
  template <class T>
  void count_spread(const T* outputs, const Rows& rows, ClassCounts& counts);

  const Graph& whole_;
  const Graph& part_;
  Place place_;
  std::int64_t classes_;
  bool known_ = false;              // whether the following was found
  std::vector<std::int64_t> ends_;  // by shard: the class behind its last one; empty: every rank holds all of them
  std::vector<std::byte> host_;
  std::vector<double> values_;
};

}  // namespace echelon::inline train
