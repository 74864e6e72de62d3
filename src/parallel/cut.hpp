// One place of a split model where tensors travel between the ranks of a replica.
#pragma once

#include <string>
#include <vector>

#include "base/shape.hpp"

namespace echelon {

enum class CutKind {
  message,  // a value from one stage to another, and its gradient back
  sum,      // of what all shards of a stage have: a value, or a gradient
  gather    // every shard has some units of a value, afterwards all have all
};

struct Cut {
  std::string value;
  Shape shape;  // of one sample, whole
  CutKind kind = CutKind::message;
  int from = 0, to = 0;                   // stages; of sums and gathers both their own
  bool learns = false;                    // message: its gradient comes back
  std::vector<std::int64_t> counts = {};  // gather: units of each shard, in order
  bool wide = false;                      // f32 where activations are halves
};

}  // namespace echelon
