// SPDX-License-Identifier: Apache-2.0
// A cut of a split model: a tensor that ranks of a replica exchange, with the ranks that take part. Its index in the
// list of cuts of a part is the number that nodes name (model/splits/cut.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/shape.hpp"

namespace echelon::inline parallel {

enum class CutKind {
  message,      // a value from one stage to another, and its gradient back
  halo,         // rows of a value from one spatial shard to its neighbour, and their gradient back
  sum,          // all-reduce over the shards of a stage: a value forward or a gradient backward
  gather,       // all-gather over the shards of a stage, each of which has some units of a value
  rows,         // all-gather over the spatial shards of a stage, each of which has some rows of a value
  row_sum,      // all-reduce over the spatial shards of a stage: the gradient of a whole value of which each reads rows
  statistics,   // all-reduce over the spatial shards of a stage: f64 (2, C), whatever the number of samples
  sample_sums,  // all-reduce over the spatial shards of a stage: f64 sums of each sample
};

// Sums over rows, which travel in f64.
constexpr bool is_row_sums(CutKind kind) { return kind == CutKind::statistics || kind == CutKind::sample_sums; }

// Whether one rank sends to another; else the cut is a collective of all shards or all spatial shards of a stage.
constexpr bool is_message(CutKind kind) { return kind == CutKind::message || kind == CutKind::halo; }

struct Cut {
  std::string value;  // its name in the graph
  Shape shape;        // per sample, of the whole value; for a halo the rows that are sent, (C, rows, W)
  CutKind kind = CutKind::message;
  int from = 0, to = 0;                                // stages; the same one except for messages
  int from_spatial_shard = -1, to_spatial_shard = -1;  // halo
  bool learns = false;                                 // message, halo: the gradient is sent back
  std::vector<std::int64_t> counts = {};               // gather, rows: units of each shard or spatial shard, in order
  bool wide = false;                                   // exchanged as f32 where activations are halves, as sums are
  std::int64_t times = 1;                              // exchanges per micro-batch, forward and backward together
};

}  // namespace echelon::inline parallel
