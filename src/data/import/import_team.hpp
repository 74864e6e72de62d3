// SPDX-License-Identifier: Apache-2.0
// The ranks that import together, and the outcome of their import.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/import/shard_writer.hpp"
#include "data/passed_over.hpp"

namespace echelon::inline data {

// All ranks of a team must make the same calls.
struct ImportTeam {
  int rank = 0, size = 1;
  // Returns the texts of all ranks, by rank, on every rank.
  std::function<std::vector<std::string>(const std::string&)> gather = [](const std::string& own) {
    return std::vector<std::string>{own};
  };
  // Runs `body`, which must not communicate, on every rank. If it throws on one rank, all ranks throw.
  std::function<void(const std::function<void()>&)> together = [](const std::function<void()>& body) { body(); };
  // Called on rank 0 before anything is written: locks the folder against imports by other processes, or throws.
  std::function<void(const std::string& folder)> hold = [](const std::string&) {};

  // Whether this rank does part `index` of work that the ranks share.
  bool is_own(std::size_t index) const {
    return index % static_cast<std::size_t>(size) == static_cast<std::size_t>(rank);
  }
};

struct ImportWritten {
  ShardsWritten shards;
  std::int64_t targets = 0;            // numbers of a label; 0: labels are classes
  std::int64_t kept = 0;               // shards that existed already
  std::int64_t changed = 0;            // shards that existed, but of other samples or options, and were made anew
  std::vector<std::string> damaged{};  // one line per image left out; also in <out>/left_out.txt
  std::vector<PassedOver> passed{};    // files that are not images
};

}  // namespace echelon::inline data
