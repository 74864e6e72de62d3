// SPDX-License-Identifier: Apache-2.0
// The working folder of a resumable import, <out>.importing:
//
//   data/   the shards, as they will be in <out>      made/   a note for each complete shard
//   lock    held by the importing process             stop    exists once a rank has failed
//
// Shards and notes are written whole or not at all. A shard does not count if it has no note, or a note for other
// samples or options.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/import/packed.hpp"
#include "data/import/statistics.hpp"

namespace echelon::inline data {

struct PlannedShard {
  std::string file;     // "shard-0000.h5", "train/shard-0000.h5"
  std::string made_of;  // checksum of the samples and of all options that affect the shard's bytes
  bool test = false;
  std::size_t first = 0, count = 0;  // range of the planned samples; damaged images may be left out
};

struct ShardNote {
  std::string made_of{};
  std::uint64_t bytes = 0;  // size of the file
  std::int64_t samples = 0;
  std::vector<Statistics::Moments> moments{};  // [channel]
  std::vector<std::string> damaged{};          // images left out of it
  std::vector<std::int32_t> labels{};          // labels of its samples, each once

  void put(Packing& packing) const;
  static ShardNote get(Unpacking& packed);
};

class ImportFolder {
 public:
  explicit ImportFolder(const std::string& out);

  const std::string& path() const { return path_; }
  std::string now(const PlannedShard& shard) const;   // path of a shard before publish
  std::string then(const PlannedShard& shard) const;  // path of a shard after publish

  // Called by one rank. Throws EnvironmentError if a folder cannot be created.
  void prepare(const std::vector<PlannedShard>& shards) const;
  // Removes all files of shards and notes except those of `kept` (PlannedShard::file).
  void keep_only(const std::set<std::string>& kept) const;
  void remove_unless_begun() const;  // removes the whole folder if no shard is complete
  // Writes left_out.txt (if `left_out` is not empty), renames data/ and removes the rest. Throws EnvironmentError.
  void publish(const std::vector<std::string>& left_out) const;

  // Returns the note of a shard that is complete and made from the same input. `changed` is set if it is complete, but
  // made from other samples or with other options.
  std::optional<ShardNote> note_of(const PlannedShard& shard, bool& changed) const;
  void write_note(const PlannedShard& shard, const ShardNote& note) const;

  void stop() const;  // does not throw
  bool stopped() const;

 private:
  std::string note_path(const PlannedShard& shard) const;

  std::string out_, path_;
};

}  // namespace echelon::inline data
