// SPDX-License-Identifier: Apache-2.0
// The role of a rank, its coordinates in the mesh, and the engines of its groups. Each engine is a separate
// communicator whose ranks are numbered inside the group.
#pragma once

#include <memory>

#include "comm/engine.hpp"
#include "config/roles.hpp"
#include "parallel/activation_exchange.hpp"
#include "parallel/mesh.hpp"

namespace echelon::inline parallel {

class RankGroups {
 public:
  // Collective over the world; all ranks pass the same roles and the mesh of the workers.
  RankGroups(const Roles& roles, Mesh mesh, Engine& world);

  const Roles& roles() const { return roles_; }
  Role role() const { return roles_.of(world_.rank()); }
  bool trains() const { return role() == Role::worker; }

  const Mesh& mesh() const { return mesh_; }  // mesh of the workers
  // The coordinates of a worker; all zero for other roles.
  const MeshCoord& coord() const { return coord_; }
  // The replica whose samples this rank reads; mesh().replicas(), which has no samples, for other roles.
  int replica() const { return trains() ? coord_.replica : mesh_.replicas(); }
  // Whether this rank computes the loss and reports it for its replica. `by_rows`: each spatial shard has that of its
  // rows (Part::has_loss_by_rows).
  bool has_loss(bool by_rows) const {
    return trains() && coord_.stage == mesh_.pipeline() - 1 && coord_.shard == 0 &&
           (by_rows || coord_.spatial_shard == 0);
  }

  // All ranks of the run; all ranks of this rank's role.
  Engine& world() { return world_; }
  Engine& peers() const { return peers_ ? *peers_ : world_; }
  // The ranks of a strategy's exchange: those that hold this part of the model; all ranks if some are not workers.
  Engine& exchange() { return roles_.mixed() ? world_ : replicas(); }

  // The ranks that hold the same part of the model, by replica, then spatial shard.
  Engine& replicas() { return replicas_ ? *replicas_ : peers(); }
  // Data-parallel peers: one rank of each replica, all at the same coordinates inside it.
  Engine& data_parallel_peers() { return data_parallel_peers_ ? *data_parallel_peers_ : peers(); }
  // The following have a meaning only if the model is split; otherwise they return peers().
  // The ranks of this replica, by index in the group.
  Engine& group() { return group_ ? *group_ : peers(); }
  // The ranks of this replica at this spatial shard, by part: together they hold the model exactly once.
  Engine& model() { return model_ ? *model_ : peers(); }
  // The ranks of this replica at this stage and spatial shard, by shard.
  Engine& shards() { return shards_ ? *shards_ : peers(); }
  // The ranks of this replica at this stage and shard, by spatial shard.
  Engine& spatial_shards() const { return spatial_shards_ ? *spatial_shards_ : peers(); }
  GroupEngines engines() { return {group(), shards(), spatial_shards()}; }

 private:
  Roles roles_;
  Mesh mesh_;
  Engine& world_;
  MeshCoord coord_;
  std::unique_ptr<Engine> peers_;  // null if all ranks have one role
  std::unique_ptr<Engine> replicas_, data_parallel_peers_, group_, model_, shards_,
      spatial_shards_;  // null if nothing is split
};

}  // namespace echelon::inline parallel
