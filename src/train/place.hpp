// Where a rank stands: its role, its seat in the mesh, and the engines of the groups that it belongs to.
#pragma once

#include <memory>

#include "comm/engine.hpp"
#include "config/roles.hpp"
#include "parallel/courier.hpp"
#include "parallel/mesh.hpp"

namespace echelon {

class Place {
 public:
  // All ranks of the world call it, with the same roles and the workers' mesh.
  Place(const Roles& roles, Mesh mesh, Engine& world);

  const Roles& roles() const { return roles_; }
  Role role() const { return roles_.of(world_.rank()); }
  bool trains() const { return role() == Role::worker; }

  const Mesh& mesh() const { return mesh_; }  // of the workers
  // Where this rank trains; else the first.
  const MeshSeat& seat() const { return seat_; }
  // Whose samples this rank takes; mesh().replicas(), which has none, where it does not train.
  int replica() const { return trains() ? seat_.replica : mesh_.replicas(); }
  // Whether this rank computes the loss, and speaks for its replica.
  bool has_loss() const {
    return trains() && seat_.stage == mesh_.pipeline() - 1 && seat_.shard == 0 && seat_.band == 0;
  }

  // All ranks of the run; those of this rank's role.
  Engine& world() { return world_; }
  Engine& peers() { return peers_ ? *peers_ : world_; }
  // Over which a strategy exchanges: the ranks that hold this part of the model, and all that do not train.
  Engine& exchange() { return roles_.mixed() ? world_ : replicas(); }

  // The ranks that hold the same part of the model, by replica, then band.
  Engine& replicas() { return replicas_ ? *replicas_ : peers(); }
  // One rank of each replica: those at this very place of it.
  Engine& twins() { return twins_ ? *twins_ : peers(); }
  // The ranks of this replica; where nothing is split, all peers, and nobody uses it.
  Engine& group() { return group_ ? *group_ : peers(); }
  // Those of them that share this band, by part: they hold the model once. Likewise.
  Engine& model() { return model_ ? *model_ : peers(); }
  // .. this stage and band, by shard.
  Engine& shards() { return shards_ ? *shards_ : peers(); }
  // .. this stage and shard, by band.
  Engine& bands() { return bands_ ? *bands_ : peers(); }
  GroupEngines engines() { return {group(), shards(), bands()}; }

 private:
  Roles roles_;
  Mesh mesh_;
  Engine& world_;
  MeshSeat seat_;
  std::unique_ptr<Engine> peers_;                                              // null where all ranks have one role
  std::unique_ptr<Engine> replicas_, twins_, group_, model_, shards_, bands_;  // null where nothing is split
};

}  // namespace echelon
