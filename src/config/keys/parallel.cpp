// SPDX-License-Identifier: Apache-2.0
// [parallel]
#include "config/keys/section.hpp"

namespace echelon::inline config::keys {

void add_parallel(Table& all) {
  auto parallel = part(all, "parallel", &Config::parallel, kNeutral);
  parallel.key("pipeline", &ParallelConfig::pipeline, range(1, 4096),
               "number of pipeline stages, each on a rank; batch.accumulation is the number of micro-batches");
  parallel.key("tensor", &ParallelConfig::tensor, range(1, 4096), "number of ranks that split the units of each layer");
  parallel.key("recurrent_from", &ParallelConfig::recurrent_from, range(-1, 1e9),
               "tensor: recurrent layers of at least this many units are split, which costs a gather and a sum in "
               "every time step; 0: none; -1: from 64 units (512 with allow_across_nodes) on CPUs, none on GPUs");
  parallel.key("space", &ParallelConfig::space, range(1, 4096), "number of ranks that split the rows of images");
  parallel.key("time_chunks", &ParallelConfig::time_chunks, range(1, 65536),
               "pipeline: sequences are processed in this many chunks of time steps, so that stages of recurrent "
               "layers overlap");
  parallel.key("split", &ParallelConfig::split, words({"given", "auto"}),
               "auto: pipeline, tensor and space are chosen for the ranks and the memory limit");
  parallel.key("costs", &ParallelConfig::costs, words({"counted", "measured"}),
               "pipeline: costs that balance the stages: counted FLOPs | times measured on this device");
  parallel.key(
      "schedule", &ParallelConfig::schedule, words({"gpipe", "1f1b"}),
      "pipeline: all forward passes first, or forward and backward passes in turn, which holds fewer activations");
  parallel.key("allow_across_nodes", &ParallelConfig::allow_across_nodes, {},
               "the ranks of one model may lie on several hosts");
}

}  // namespace echelon::inline config::keys
