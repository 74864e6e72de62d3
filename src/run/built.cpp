// SPDX-License-Identifier: Apache-2.0
#include "run/built.hpp"

#include <fmt/format.h>

#include "run/channels.hpp"

namespace echelon::inline run {
namespace {

// "_2x1-0" of the first of two stages; nothing if the model is whole.
std::string part_name(const RankGroups& groups) {
  const Mesh& mesh = groups.mesh();
  return mesh.parts() > 1 ? fmt::format("_{}x{}-{}", mesh.pipeline(), mesh.tensor(), mesh.part(groups.coord())) : "";
}

std::optional<PartNorms> part_norms_of(RankGroups& groups) {
  if (!groups.mesh().splits()) return {};
  return std::optional<PartNorms>(std::in_place, groups.model(), groups.shards(), kNormsChannel,
                                  groups.coord().shard == 0);
}

}  // namespace

Built::Built(const AttemptContext& context, Placed& placed, const Agreed& agreed, Opened& opened)
    : arenas(*opened.device, agreed.plan.part.graph.parameters(), wide_of(agreed.config.device.dtype)),
      part_norms(part_norms_of(placed.groups)),
      optimiser(agreed.config.optimiser, arenas, loss_scaling_of(agreed.config.device),
                part_norms ? &*part_norms : nullptr),
      strategy(make_strategy(opened.exchange, {.arenas = arenas,
                                               .optimiser = optimiser,
                                               .engine = placed.groups.exchange(),
                                               .first_channel = kStrategyChannel,
                                               .seed = agreed.config.seed,
                                               .part = part_name(placed.groups),
                                               .role = placed.groups.role(),
                                               .steps_per_epoch = agreed.plan.steps_per_epoch,
                                               .recorded = agreed.replay.recorded,
                                               .may_lose_workers = context.goes_on(agreed.config),
                                               .noise_scale = agreed.config.monitor.noise_scale})),
      batch_norm_sum(*opened.device, placed.groups.data_parallel_peers(), kSumsChannel, *strategy, opened.exchange,
                     agreed.config.model.batch_norm_group),
      state{.global_batch = agreed.plan.batch.global,
            .replicas = agreed.plan.shards.replicas(),
            .steps_per_epoch = agreed.plan.steps_per_epoch} {
  arenas.initialise(agreed.config.seed);
}

}  // namespace echelon::inline run
