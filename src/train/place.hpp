// Where a rank stands: its seat in the mesh, and the engines of the groups that it belongs to.
#pragma once

#include <memory>

#include "comm/engine.hpp"
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
  bool has_loss() const { return seat_.stage == mesh_.pipeline() - 1 && seat_.shard == 0; }
  // Number of this rank's part of the model, below mesh().group_size().
  int part() const { return mesh_.index_in_group(seat_); }

  // The ranks that hold the same part of the model, by replica.
  Engine& replicas() { return replicas_ ? *replicas_ : world_; }
  // The ranks of this replica, by part; where nothing is split, all of the world, and nobody uses it.
  Engine& group() { return group_ ? *group_ : world_; }
  // The ranks that share this stage of this replica, by shard; likewise.
  Engine& shards() { return shards_ ? *shards_ : world_; }

 private:
  Mesh mesh_;
  MeshSeat seat_;
  Engine& world_;
  std::unique_ptr<Engine> replicas_, group_, shards_;  // null where nothing is split
};

}  // namespace echelon
