// SPDX-License-Identifier: Apache-2.0
// Imports collections of images as shards: `echelon data import images | tar`, in one process or on a launch's ranks.
//
// The ranks list the units of the input and share the results. Then all of them know which sample goes into which
// shard; this depends only on the input and the options, not on the number of ranks. Each missing shard is made by one
// rank in <out>.importing, with a note beside it that identifies its input and options. When all shards are whole, mean
// and std of the set are written into their headers, and the folder is renamed. If the import is killed, the same
// command keeps the shards whose note matches and makes the others. Memory: the list, about 150 bytes per image, and a
// chunk of samples.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/import/image_input.hpp"
#include "data/import/shard_writer.hpp"

namespace echelon::inline data {

// The ranks that import together. All of them must make the same calls.
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
};

struct ImagesWritten {
  ShardsWritten shards;
  std::int64_t kept = 0;             // shards that existed already
  std::vector<std::string> damaged;  // one line per image left out; also in <out>/left_out.txt
  std::vector<PassedOver> passed;    // files that are not images
};

// Returns the same on every rank. Throws what write_shards throws. After an error, whole shards are kept for the next
// run; if there are none, nothing is kept.
ImagesWritten write_images(const ImageRequest& request, const ShardOptions& options, const ImportTeam& team = {});

}  // namespace echelon::inline data
