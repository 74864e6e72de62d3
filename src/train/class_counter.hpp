// Counts the labels of a batch by what a program has computed for them.
//
// Of a softmax loss the classes are those of the data; of binary cross-entropy two, "no" (output <= 0) and "yes", all
// outputs together. Where shards of a model (parallel.tensor) hold some of the classes each, two sums over the
// replica's ranks give every label's place: n labels, then 2 n values a shard; n values.
#pragma once

#include <cstdint>
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

// ConfigError where evaluate.metrics asks for figures that a model has none of, or for a matrix of too many classes.
void check_metrics(const Config& config, const Graph& whole);

class ClassCounter {
 public:
  struct Place {
    Group* replica = nullptr;  // of a split model, all ranks of this replica
    bool has_outputs = true;   // this rank's program computes them, or some; of several spatial shards the first
    int shard = 0;             // which of those that share its layers
    bool counts = true;        // into `counts`: one rank a replica
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
  std::vector<std::int64_t> ends_;  // by shard: the class behind its last one; empty: no rank holds some of them alone
  std::vector<std::byte> host_;
  std::vector<double> values_;
};

}  // namespace echelon::inline train
