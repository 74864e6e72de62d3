// Where a rank stands: its seat in the mesh, and the engines of the groups that it belongs to.
#pragma once

#include <memory>

#include "comm/engine.hpp"
#include "parallel/courier.hpp"
#include "parallel/mesh.hpp"

namespace echelon {

class Place {
 public:
  // All ranks of the world call it, with one mesh.
  Place(Mesh mesh, Engine& world);

  const Mesh& mesh() const { return mesh_; }
  const MeshSeat& seat() const { return seat_; }
  int replica() const { return seat_.replica; }
  // Whether this rank computes the loss, and speaks for its replica.
  bool has_loss() const { return seat_.stage == mesh_.pipeline() - 1 && seat_.shard == 0 && seat_.band == 0; }

  // The ranks that hold the same part of the model, by replica, then band.
  Engine& replicas() { return replicas_ ? *replicas_ : world_; }
  // One rank of each replica: those at this very place of it.
  Engine& twins() { return twins_ ? *twins_ : world_; }
  // The ranks of this replica; where nothing is split, all of the world, and nobody uses it.
  Engine& group() { return group_ ? *group_ : world_; }
  // Those of them that share this band, by part: they hold the model once. Likewise.
  Engine& model() { return model_ ? *model_ : world_; }
  // .. this stage and band, by shard.
  Engine& shards() { return shards_ ? *shards_ : world_; }
  // .. this stage and shard, by band.
  Engine& bands() { return bands_ ? *bands_ : world_; }
  GroupEngines engines() { return {group(), shards(), bands()}; }

 private:
  Mesh mesh_;
  MeshSeat seat_;
  Engine& world_;
  std::unique_ptr<Engine> replicas_, twins_, group_, model_, shards_, bands_;  // null where nothing is split
};

}  // namespace echelon
