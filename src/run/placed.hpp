// SPDX-License-Identifier: Apache-2.0
// A phase of an attempt: this rank has its role, its place in the mesh, and its groups.
#pragma once

#include <optional>

#include "parallel/rank_groups.hpp"
#include "run/context.hpp"

namespace echelon::inline run {

struct Placed {
  RankGroups groups;
  std::optional<Group> replica;  // the ranks of this replica, if the model is split

  Group* replica_or_null() { return replica ? &*replica : nullptr; }
};

// Collective. Throws ConfigError on all ranks if the launch does not fit the roles and splits of the config.
Placed place_rank(AttemptContext& context, const Config& config);

}  // namespace echelon::inline run
