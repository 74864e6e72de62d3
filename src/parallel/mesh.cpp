// SPDX-License-Identifier: Apache-2.0
#include "parallel/mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace echelon::inline parallel {
namespace {

// "pipeline 2 x space 4"; factors of 1 are left out.
std::string factors_text(std::int64_t pipeline, std::int64_t tensor, std::int64_t space) {
  std::string factors;
  const auto factor = [&](const char* name, std::int64_t n) {
    if (n > 1) factors += fmt::format("{}{} {}", factors.empty() ? "" : " x ", name, n);
  };
  factor("pipeline", pipeline);
  factor("tensor", tensor);
  factor("space", space);
  return factors;
}

}  // namespace

int ranks_of_replica(const ParallelConfig& parallel) {
  return static_cast<int>(parallel.pipeline * parallel.tensor * parallel.space);
}

Mesh::Mesh(int ranks) : rank_(static_cast<std::size_t>(ranks)), index_(rank_.size()), hosts_(rank_.size(), 0) {
  std::iota(rank_.begin(), rank_.end(), 0);
  std::iota(index_.begin(), index_.end(), 0);
}

Mesh::Mesh(const ParallelConfig& parallel, const std::vector<int>& hosts, const std::vector<std::string>& host_names)
    : Mesh(static_cast<int>(hosts.size())) {
  pipeline_ = static_cast<int>(parallel.pipeline);
  tensor_ = static_cast<int>(parallel.tensor);
  space_ = static_cast<int>(parallel.space);
  hosts_ = hosts;
  const std::string size = factors_text(pipeline_, tensor_, space_);
  if (ranks() % group_size() != 0)
    throw ConfigError(
        fmt::format("one replica takes {} ({}), and {} cannot be divided into such groups; nearest valid: {}{}",
                    counted(group_size(), "rank"), size, counted(ranks(), "rank"),
                    ranks() > group_size() ? fmt::format("{} or ", ranks() / group_size() * group_size()) : "",
                    (ranks() / group_size() + 1) * group_size()));
  std::stable_sort(rank_.begin(), rank_.end(), [&](int a, int b) {
    return hosts[static_cast<std::size_t>(a)] < hosts[static_cast<std::size_t>(b)];
  });
  for (std::size_t index = 0; index < rank_.size(); ++index)
    index_[static_cast<std::size_t>(rank_[index])] = static_cast<int>(index);
  if (parallel.allow_across_nodes) return;
  for (std::size_t host = 0; host < host_names.size(); ++host)
    if (const auto here = std::count(hosts.begin(), hosts.end(), static_cast<int>(host)); here % group_size() != 0)
      throw ConfigError(
          fmt::format("host {} has {}, but one replica takes {} ({}) and must be on one host; start a multiple of {} "
                      "ranks on each host, "
                      "or set parallel.allow_across_nodes = true",
                      host_names[host], counted(here, "rank"), group_size(), size, group_size()));
}

MeshCoord Mesh::coord(int rank) const {
  ECHELON_CHECK(rank >= 0 && rank < ranks(), "rank {} is not one of {} ranks", rank, ranks());
  const int in_mesh = index_[static_cast<std::size_t>(rank)], index = in_mesh % group_size();
  return {.replica = in_mesh / group_size(),
          .stage = index / space_ / tensor_,
          .shard = index / space_ % tensor_,
          .spatial_shard = index % space_};
}

std::vector<int> Mesh::holders(int part) const {
  std::vector<int> ranks;
  for (int replica = 0; replica < replicas(); ++replica)
    for (int spatial_shard = 0; spatial_shard < space_; ++spatial_shard)
      ranks.push_back(rank_of(replica, part * space_ + spatial_shard));
  return ranks;
}

int Mesh::host_of(int replica) const { return hosts_[static_cast<std::size_t>(rank_of(replica, 0))]; }

int Mesh::rank_of(int replica, int index_in_group) const {
  return rank_[static_cast<std::size_t>(replica * group_size() + index_in_group)];
}

std::string Mesh::text() const {
  const std::string factors = factors_text(pipeline_, tensor_, space_);
  return fmt::format("data {}{}{}", replicas(), factors.empty() ? "" : " x ", factors);
}

}  // namespace echelon::inline parallel
