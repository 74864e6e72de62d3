#include "parallel/split.hpp"

#include <utility>

#include "parallel/pipeline.hpp"
#include "parallel/stages.hpp"
#include "parallel/tensor.hpp"

namespace echelon {

Part part_of(const Graph& whole, const ParallelConfig& parallel, const MeshSeat& seat,
             const std::vector<double>& costs) {
  Part part{.stages = assign_stages(whole, costs, static_cast<int>(parallel.pipeline)), .cuts = {}, .graph = whole};
  if (parallel.pipeline > 1) {
    part.cuts = cuts_between(whole, part.stages);
    part.graph = stage_graph(whole, part.stages, part.cuts, seat.stage);
  }
  if (parallel.tensor > 1)
    part.graph = shard_graph(part.graph, seat.stage, static_cast<int>(parallel.tensor), seat.shard, part.cuts);
  return part;
}

}  // namespace echelon
