// SPDX-License-Identifier: Apache-2.0
#include "run/placed.hpp"

#include "job/agree.hpp"
#include "run/channels.hpp"
#include "train/run_plan.hpp"

namespace echelon::inline run {

Placed place_rank(AttemptContext& context, const Config& config) {
  Roles roles;
  std::optional<Mesh> mesh;
  all_or_none(context.group, [&] {
    const Transport& transport = context.engine.transport();
    roles = roles_of(config, context.slot.ranks);
    mesh = mesh_of_workers(config, roles, transport.hosts(), transport.host_names());
  });
  Placed placed{.groups = RankGroups(roles, std::move(*mesh), context.engine), .replica = {}};
  if (placed.groups.mesh().splits()) placed.replica.emplace(placed.groups.group(), kReplicaChannel);
  return placed;
}

}  // namespace echelon::inline run
