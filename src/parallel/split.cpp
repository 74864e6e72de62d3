#include "parallel/split.hpp"

#include <utility>

#include "parallel/pipeline.hpp"
#include "parallel/stages.hpp"
#include "parallel/staircase.hpp"
#include "parallel/tensor.hpp"

namespace echelon {

Part part_of(const Graph& whole, const ParallelConfig& parallel, const MeshSeat& seat,
             const std::vector<double>& costs) {
  const int stages = static_cast<int>(parallel.pipeline), chunks = static_cast<int>(parallel.time_chunks);
  Part part{.stages = chunks > 1 ? staircase_stages(whole, costs, stages) : assign_stages(whole, costs, stages),
            .cuts = {},
            .graph = whole};
  std::vector<int> by_node = part.stages;
  if (chunks > 1) {
    Staircase staircase = cut_time(whole, part.stages, chunks);
    part.graph = std::move(staircase.graph);
    by_node = std::move(staircase.stages);
  }
  if (stages > 1) {
    part.cuts = cuts_between(part.graph, by_node);
    part.graph = stage_graph(part.graph, by_node, part.cuts, seat.stage);
  }
  if (parallel.tensor > 1)
    part.graph = shard_graph(part.graph, seat.stage, static_cast<int>(parallel.tensor), seat.shard, part.cuts);
  return part;
}

}  // namespace echelon
