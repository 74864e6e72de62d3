// Who does what among the ranks of a run: made once from the config and the number of ranks, and passed down.
//
// Ranks of one role follow each other: workers first, servers last. A role to come (a spare, an evaluator) is a count
// here, what its ranks do in a step (train/stepper.cpp), and a test.
#pragma once

#include <cstdint>
#include <string_view>

#include "config/schema.hpp"

namespace echelon::inline config {

enum class Role : std::uint8_t {
  worker,  // computes gradients
  server,  // holds parts of the weights, and trains nothing
};
std::string_view name_of(Role role);

struct Roles {
  int workers = 1;
  int servers = 0;  // on ranks of their own

  int ranks() const { return workers + servers; }
  // More than one role.
  bool mixed() const { return servers > 0; }
  Role of(int rank) const { return rank < workers ? Role::worker : Role::server; }
};

// Of a launch of so many ranks. ConfigError, naming the nearest valid value, where no worker is left.
Roles roles_of(const Config& config, int ranks);

}  // namespace echelon::inline config
