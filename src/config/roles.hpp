// SPDX-License-Identifier: Apache-2.0
// The role of each rank of a run, computed once from the config and the number of ranks; equal on every rank.
//
// Ranks of one role are contiguous: workers first, servers last. A new role (a spare, an evaluator) needs a count here,
// code for the work of its ranks in a step (train/stepper.cpp), and a test.
#pragma once

#include <cstdint>
#include <string_view>

#include "config/schema.hpp"

namespace echelon::inline config {

enum class Role : std::uint8_t {
  worker,  // computes gradients
  server,  // holds and updates parts of the weights, computes no gradients
};
std::string_view name_of(Role role);

struct Roles {
  int workers = 1;
  int servers = 0;  // servers that have their own ranks

  int ranks() const { return workers + servers; }
  // Whether there is more than one role.
  bool mixed() const { return servers > 0; }
  Role of(int rank) const { return rank < workers ? Role::worker : Role::server; }
};

// Returns the roles in a launch of `ranks` ranks: exchange.server.ranks of them are servers, the others workers. Throws
// ConfigError, with the nearest valid value, if no worker is left.
Roles roles_of(const Config& config, int ranks);

}  // namespace echelon::inline config
