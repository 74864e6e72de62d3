// Who holds which part of which replica: ranks as a mesh of (data, pipeline, tensor).
//
// A model group is the ranks that hold one replica together. It lies on one host unless that is allowed otherwise;
// hosts are filled group by group in the order of their ranks, whatever order the launcher dealt ranks out in. Inside a
// group the shards of a stage are neighbours: index = stage * tensor + shard.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon {

struct MeshSeat {
  int replica = 0;
  int stage = 0;
  int shard = 0;
  friend bool operator==(const MeshSeat&, const MeshSeat&) = default;
};

class Mesh {
 public:
  // Everything data-parallel.
  explicit Mesh(int ranks);
  // `hosts`: host index by rank. ConfigError, naming the host and the numbers, where groups do not fit.
  Mesh(const ParallelConfig& parallel, const std::vector<int>& hosts, const std::vector<std::string>& host_names);

  int pipeline() const { return pipeline_; }
  int tensor() const { return tensor_; }
  int group_size() const { return pipeline_ * tensor_; }
  int ranks() const { return static_cast<int>(rank_.size()); }
  int replicas() const { return ranks() / group_size(); }
  bool splits() const { return group_size() > 1; }

  MeshSeat seat(int rank) const;
  int rank(const MeshSeat& seat) const { return rank_of(seat.replica, index_in_group(seat)); }
  int rank_of(int replica, int index_in_group) const;
  int index_in_group(const MeshSeat& seat) const { return seat.stage * tensor_ + seat.shard; }

  // "data 2 x pipeline 2", "data 4"
  std::string text() const;

 private:
  int pipeline_ = 1, tensor_ = 1;
  std::vector<int> rank_;   // by place in the mesh: replica, then index in the group
  std::vector<int> place_;  // by rank
};

}  // namespace echelon
