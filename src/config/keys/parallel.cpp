// [parallel]
#include "config/keys/section.hpp"

namespace echelon::keys {

void add_parallel(Table& all) {
  auto parallel = part(all, "parallel", &Config::parallel, kNeutral);
  parallel.key("pipeline", &ParallelConfig::pipeline, range(1, 4096),
               "stages that a model's layers are cut into, each on a rank; batch.accumulation is their micro-batches");
  parallel.key("tensor", &ParallelConfig::tensor, range(1, 4096), "ranks that share the units of each layer");
  parallel.key(
      "recurrent_from", &ParallelConfig::recurrent_from, range(-1, 1e9),
      "tensor: recurrent layers of at least so many units share them, at the price of a gather and a sum every "
      "step; 0: they stay whole; -1: from 64 units (512 with allow_across_nodes) on the host's cores, whole on GPUs");
  parallel.key("space", &ParallelConfig::space, range(1, 4096), "ranks that share the rows of images");
  parallel.key(
      "time_chunks", &ParallelConfig::time_chunks, range(1, 65536),
      "pipeline: the steps of sequences are cut into so many chunks, so that stages of recurrent layers overlap");
  parallel.key("split", &ParallelConfig::split, words({"given", "auto"}),
               "auto: pipeline, tensor and space are chosen for the ranks and the memory limit");
  parallel.key("costs", &ParallelConfig::costs, words({"counted", "measured"}),
               "pipeline: from which stages are chosen: counted FLOPs | times measured on this device");
  parallel.key("schedule", &ParallelConfig::schedule, words({"gpipe", "1f1b"}),
               "pipeline: all forwards first, or in turns with backwards, which holds fewer activations");
  parallel.key("allow_across_nodes", &ParallelConfig::allow_across_nodes, {},
               "the ranks of one model may lie on several hosts");
}

}  // namespace echelon::keys
