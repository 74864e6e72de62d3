// The folder in which an import that can be taken up again works, <out>.importing:
//
//   data/   the shards, as they will lie in <out>     made/   a note for each shard that is whole
//   lock    of the process that imports               stop    there while a rank has failed
//
// Shards and notes are written whole or not at all; a shard without a note, or with one of other images or options,
// does not count.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/import/image_plan.hpp"
#include "data/import/packed.hpp"
#include "data/import/statistics.hpp"

namespace echelon::inline data {

struct ShardNote {
  std::string made_of{};
  std::uint64_t bytes = 0;  // of the file
  std::int64_t samples = 0;
  std::vector<Statistics::Moments> moments{};  // by channel
  std::vector<std::string> damaged{};          // what was left out of it
  std::vector<std::int32_t> labels{};          // of its samples, each once

  void put(Packing& packing) const;
  static ShardNote get(Unpacking& packed);
};

class ImportFolder {
 public:
  explicit ImportFolder(const std::string& out);

  const std::string& path() const { return path_; }
  std::string now(const PlannedShard& shard) const;   // the path of a shard before publish
  std::string then(const PlannedShard& shard) const;  // afterwards

  // For one rank. EnvironmentError where a folder cannot be made.
  void prepare(const std::vector<PlannedShard>& shards) const;
  // Removes all files of shards and notes but those of `kept`, PlannedShard::file.
  void keep_only(const std::set<std::string>& kept) const;
  void remove_unless_begun() const;  // the whole folder, where no shard is whole
  // Writes `left_out` into left_out.txt, unless there is none, renames data/ and removes the rest. EnvironmentError.
  void publish(const std::vector<std::string>& left_out) const;

  // The note of a shard that is whole and made of the same.
  std::optional<ShardNote> note_of(const PlannedShard& shard) const;
  void write_note(const PlannedShard& shard, const ShardNote& note) const;

  void stop() const;  // throws nothing
  bool stopped() const;

 private:
  std::string note_path(const PlannedShard& shard) const;

  std::string out_, path_;
};

}  // namespace echelon::inline data
