// A cut of a split model: a tensor that is exchanged between the ranks of a replica.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/shape.hpp"

namespace echelon::inline parallel {

enum class CutKind {
  message,     // a value from one stage to another, and its gradient back
  halo,        // rows of a value from one spatial shard to its neighbour, and their gradient back
  sum,         // of what all shards of a stage have: a value, or a gradient
  gather,      // every shard has some units of a value, afterwards all have all
  rows,        // every spatial shard has some rows of a value, afterwards all have all
  statistics,  // of what all spatial shards have: f64, not one a sample
};

// Whether it is a message from one rank to another; otherwise a collective of all shards or spatial shards of a stage.
constexpr bool is_message(CutKind kind) { return kind == CutKind::message || kind == CutKind::halo; }

struct Cut {
  std::string value;
  Shape shape;  // of one sample: whole; of a halo its rows
  CutKind kind = CutKind::message;
  int from = 0, to = 0;                                // stages; one and the same but of messages
  int from_spatial_shard = -1, to_spatial_shard = -1;  // halo
  bool learns = false;                                 // message, halo: its gradient comes back
  std::vector<std::int64_t> counts = {};               // gather, rows: units of each shard or spatial shard, in order
  bool wide = false;                                   // f32 where activations are halves
  std::int64_t times = 1;                              // exchanges for each micro-batch, forward and backward together
};

}  // namespace echelon::inline parallel
