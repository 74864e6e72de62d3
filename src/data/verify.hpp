// SPDX-License-Identifier: Apache-2.0
// Checks whether the bytes of a shard are unchanged since they were written.
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
  std::string wrong = {};                   // why the file cannot be read as a shard at all; else ""
  std::vector<DamagedRows> damaged = {};    // in the order of the file, adjacent ranges merged
  std::vector<std::string> unchecked = {};  // datasets without checksums, which were only read
  std::uint64_t bytes = 0;                  // bytes read

  bool ok() const { return wrong.empty() && damaged.empty(); }
};

// Reads every byte of every dataset and verifies the checksums that exist. `from_disk`: asks the system to drop its
// cached pages of the file first. Memory: a chunk, at least 1 MiB. Does not throw for a damaged file.
ShardVerdict verify_shard(const std::string& path, bool from_disk = false);

// Verifies files that were just written. Throws DataError for the first damaged one. Returns the bytes read.
std::uint64_t require_intact(const std::vector<std::string>& paths);

// "'samples' rows 128 to 255: it does not have its checksum; ..", the first few.
std::string damage_text(const ShardVerdict& verdict);

}  // namespace echelon::inline data
