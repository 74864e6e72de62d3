// Whether the bytes of a shard are those that were written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace echelon::inline data {

struct DamagedRows {
  std::string dataset;
  std::int64_t first = 0, count = 0;
  std::string why;
};

struct ShardVerdict {
  std::string path;
  std::string wrong = {};                   // the file as a whole cannot be read as a shard: why; else ""
  std::vector<DamagedRows> damaged = {};    // in the order of the file, neighbours joined
  std::vector<std::string> unchecked = {};  // datasets without checksums, read all the same
  std::uint64_t bytes = 0;                  // read

  bool ok() const { return wrong.empty() && damaged.empty(); }
};

// Reads every byte of every dataset and compares checksums where there are some. `from_disk`: asks the system to drop
// what it holds of the file in memory first. Memory: a chunk, at least 1 MiB. Throws nothing for a damaged file.
ShardVerdict verify_shard(const std::string& path, bool from_disk = false);

// Verifies files that were written just now: DataError with the first that is damaged. Returns the bytes read.
std::uint64_t require_intact(const std::vector<std::string>& paths);

// "'samples' rows 128 to 255: it does not have its checksum; ..", the first few.
std::string damage_text(const ShardVerdict& verdict);

}  // namespace echelon::inline data
