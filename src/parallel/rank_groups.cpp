// SPDX-License-Identifier: Apache-2.0
#include "parallel/rank_groups.hpp"

#include <utility>

#include "base/check.hpp"

namespace echelon::inline parallel {

RankGroups::RankGroups(const Roles& roles, Mesh mesh, Engine& world)
    : roles_(roles), mesh_(std::move(mesh)), world_(world) {
  ECHELON_CHECK_EQ(roles_.ranks(), world.size());
  ECHELON_CHECK_EQ(roles_.workers, mesh_.ranks());
  if (trains()) coord_ = mesh_.coord(world.rank());
  if (roles_.mixed()) peers_ = world.split(static_cast<int>(role()), world.rank());
  if (!mesh_.splits()) return;
  ECHELON_CHECK(!roles_.mixed(), "a split model cannot have ranks of several roles");
  const int index = mesh_.index_in_group(coord_), part = mesh_.part(coord_), space = mesh_.space();
  const int stage = coord_.replica * mesh_.pipeline() + coord_.stage;
  group_ = world.split(coord_.replica, index);
  replicas_ = world.split(part, coord_.replica * space + coord_.spatial_shard);
  data_parallel_peers_ = world.split(index, coord_.replica);
  model_ = world.split(coord_.replica * space + coord_.spatial_shard, part);
  shards_ = world.split(stage * space + coord_.spatial_shard, coord_.shard);
  spatial_shards_ = world.split(coord_.replica * mesh_.parts() + part, coord_.spatial_shard);
}

}  // namespace echelon::inline parallel
