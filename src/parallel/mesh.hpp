// SPDX-License-Identifier: Apache-2.0
// The assignment of ranks to the parts of replicas: a mesh of (data, pipeline, tensor, space). Plain values.
//
// A model group is the set of ranks that hold one replica. It lies on one host unless parallel.allow_across_nodes;
// hosts are filled group by group in the order of their ranks, independent of the order in which the launcher placed
// ranks. Inside a group the spatial shards of a shard are neighbours, then the shards of a stage:
//   index in the group = (stage * tensor + shard) * space + spatial shard
//
// A part is (stage, shard). Spatial shards divide the images of a part and all hold its parameters, so the holders of a
// part are its spatial shards in all replicas.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline parallel {

struct MeshCoord {
  int replica = 0;
  int stage = 0;
  int shard = 0;
  int spatial_shard = 0;
  friend bool operator==(const MeshCoord&, const MeshCoord&) = default;
};

// The number of ranks of a model group: pipeline * tensor * space.
int ranks_of_replica(const ParallelConfig& parallel);

class Mesh {
 public:
  // Only data parallelism: each rank is a replica.
  explicit Mesh(int ranks);
  // `hosts`: host index by rank. ConfigError with the host and the numbers if the group size does not divide the number
  // of ranks or, without allow_across_nodes, that of a host.
  Mesh(const ParallelConfig& parallel, const std::vector<int>& hosts, const std::vector<std::string>& host_names);

  int pipeline() const { return pipeline_; }
  int tensor() const { return tensor_; }
  int space() const { return space_; }
  int parts() const { return pipeline_ * tensor_; }
  int group_size() const { return parts() * space_; }
  int ranks() const { return static_cast<int>(rank_.size()); }
  int replicas() const { return ranks() / group_size(); }
  bool splits() const { return group_size() > 1; }

  MeshCoord coord(int rank) const;
  int rank(const MeshCoord& coord) const { return rank_of(coord.replica, index_in_group(coord)); }
  int rank_of(int replica, int index_in_group) const;
  int part(const MeshCoord& coord) const { return coord.stage * tensor_ + coord.shard; }
  int index_in_group(const MeshCoord& coord) const { return part(coord) * space_ + coord.spatial_shard; }
  // The ranks that hold this part, which is in [0, parts()): by replica, then spatial shard.
  std::vector<int> holders(int part) const;
  // Index of the host on which the first rank of a replica is.
  int host_of(int replica) const;

  // "data 2 x pipeline 2", "data 4"
  std::string text() const;

 private:
  int pipeline_ = 1, tensor_ = 1, space_ = 1;
  std::vector<int> rank_;   // by index in the mesh: replica, then index in the group
  std::vector<int> index_;  // by rank
  std::vector<int> hosts_;  // by rank
};

}  // namespace echelon::inline parallel
