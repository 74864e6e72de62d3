// Collections of images as shards: `echelon data import images | tar`, by one process or by the ranks of a launch.
//
// Ranks list the units of the input and share what they found; from then on all know which sample goes into which
// shard, which depends on the input and the options alone, not on the number of ranks. Each missing shard is made by
// one rank, in <out>.importing, with a note beside it that says of what it was made. When all are whole, mean and std
// of the set are written into their headers, and the folder is renamed. The same command, given again after it was
// killed, keeps the shards whose note fits, and makes the others. Memory: the list, about 150 bytes an image, and a
// chunk of samples.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/import/image_input.hpp"
#include "data/import/shard_writer.hpp"

namespace echelon::inline data {

// The ranks that import together; all of them make the same calls.
struct ImportTeam {
  int rank = 0, size = 1;
  // The texts of all ranks, by rank, on every rank.
  std::function<std::vector<std::string>(const std::string&)> gather = [](const std::string& own) {
    return std::vector<std::string>{own};
  };
  // Runs a body, which does not communicate, on every rank; where it throws on one of them, all throw.
  std::function<void(const std::function<void()>&)> together = [](const std::function<void()>& body) { body(); };
  // On rank 0, before anything is written: keeps other processes from importing into this folder, or throws.
  std::function<void(const std::string& folder)> hold = [](const std::string&) {};
};

struct ImagesWritten {
  ShardsWritten shards;
  std::int64_t kept = 0;             // shards that were there already
  std::vector<std::string> damaged;  // what was left out, a line each; in <out>/left_out.txt too
  std::vector<PassedOver> passed;    // what is no image
};

// The same on every rank. Throws what write_shards throws. Shards that are whole stay for the next time; where there is
// none, nothing stays.
ImagesWritten write_images(const ImageRequest& request, const ShardOptions& options, const ImportTeam& team = {});

}  // namespace echelon::inline data
