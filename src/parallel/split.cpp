// SPDX-License-Identifier: Apache-2.0
#include "parallel/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "device/device.hpp"
#include "parallel/pipeline.hpp"
#include "parallel/space.hpp"
#include "parallel/stages.hpp"
#include "parallel/tensor.hpp"
#include "parallel/time_chunk_pipeline.hpp"

namespace echelon::inline parallel {

void resolve_recurrent_from(Config& config) {
  constexpr std::int64_t kPaysOnHost = 64, kPaysAcross = 512;
  ParallelConfig& parallel = config.parallel;
  if (parallel.recurrent_from >= 0 || (parallel.tensor == 1 && parallel.split != "auto")) return;
  parallel.recurrent_from = means_gpu(config.device.kind) ? 0 : parallel.allow_across_nodes ? kPaysAcross : kPaysOnHost;
}

void leave_out_unused(ParallelConfig& parallel) {
  const ParallelConfig plain;
  if (ranks_of_replica(parallel) == 1) parallel.allow_across_nodes = plain.allow_across_nodes;
  if (parallel.tensor == 1) parallel.recurrent_from = plain.recurrent_from;
  if (parallel.pipeline > 1) return;
  parallel.schedule = plain.schedule;
  parallel.costs = plain.costs;
  parallel.time_chunks = plain.time_chunks;
}

std::string unsplit_alone(Config& config, int ranks) {
  if (ranks != 1) return {};
  for (LayerConfig& layer : config.model.layers) layer.stage = -1;
  ParallelConfig& parallel = config.parallel;
  const int group = ranks_of_replica(parallel);
  if (group == 1) return {};
  parallel.pipeline = parallel.tensor = parallel.space = 1;
  leave_out_unused(parallel);
  return fmt::format("the model is not split, because [parallel] needs groups of {} ranks and there is one rank",
                     group);
}

Part part_of(const Graph& whole, const ParallelConfig& parallel, const MeshCoord& coord,
             const std::vector<double>& costs) {
  const int stages = static_cast<int>(parallel.pipeline), chunks = static_cast<int>(parallel.time_chunks);
  Part part{.stages = chunks > 1 ? time_chunk_stages(whole, costs, stages) : assign_stages(whole, costs, stages),
            .cuts = {},
            .graph = whole};
  std::vector<int> by_node = part.stages;
  std::set<std::string> on_rows;
  if (chunks > 1) {
    ChunkedGraph chunked = cut_time(whole, part.stages, chunks);
    part.graph = std::move(chunked.graph);
    by_node = std::move(chunked.stages);
  }
  if (parallel.space > 1) {
    const SpacePlan plan(whole, static_cast<int>(parallel.space));
    SpatialShardGraph spatial_shard = spatial_shard_graph(whole, part.stages, plan, coord.spatial_shard, part.cuts);
    part.graph = std::move(spatial_shard.graph);
    by_node = std::move(spatial_shard.stages);
    on_rows = plan.names();
    part.slab = plan.slab(coord.spatial_shard);
  }
  if (stages > 1) {
    const std::vector<Cut> between = cuts_between(part.graph, by_node);
    part.cuts.insert(part.cuts.end(), between.begin(), between.end());
    part.graph = stage_graph(part.graph, by_node, part.cuts, coord.stage);
  }
  if (parallel.tensor > 1) {
    const TensorShardCoord shard{.stage = coord.stage,
                                 .shards = static_cast<int>(parallel.tensor),
                                 .shard = coord.shard,
                                 .recurrent_from = std::max<std::int64_t>(0, parallel.recurrent_from)};
    part.shards = shards_text(part.graph, shard);
    part.graph = shard_graph(part.graph, shard, part.cuts);
  }
  if (coord.spatial_shard > 0) part.counted_elsewhere = counted_elsewhere(part.graph, on_rows);
  return part;
}

void Part::zero_counted_elsewhere(ArenaRange ready, Arenas& arenas) const {
  for (const ArenaRange& range : counted_elsewhere)
    if (range.begin >= ready.begin && range.end <= ready.end)
      arenas.device().zero(arenas.gradients_at(range.begin),
                           static_cast<std::size_t>(range.elems()) * size_of(arenas.dtype()));
}

}  // namespace echelon::inline parallel
