// SPDX-License-Identifier: Apache-2.0
// Makes the shards of a set on the ranks of a launch, resumably. All ranks know beforehand which sample goes into which
// shard; this depends only on the input and the options, not on the number of ranks.
//
// Each missing shard is made by one rank in <out>.importing, with a note beside it that identifies its input and
// options. When all shards are whole, mean and std of the set are written into their headers, and the folder is
// renamed. If the import is killed, the same command keeps the shards whose note matches and makes the others. After an
// error, whole shards are kept for the next run; if there are none, nothing is kept.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "data/import/import_folder.hpp"
#include "data/import/import_team.hpp"
#include "data/import/packed.hpp"
#include "data/import/shard_file.hpp"

namespace echelon::inline data {

// Returns the shards of `train` samples and one of `held` samples behind them, without `made_of`.
std::vector<PlannedShard> planned_shards(std::int64_t train, std::int64_t held, const ShardOptions& options);

// Reads the packings of all ranks, each of which begins with a checksum of the files that the rank sees, from behind
// it. EnvironmentError, with `place`, if a rank sees other files than rank 0. `of_ranks` must outlive the result.
std::vector<Unpacking> of_same_files(const std::vector<std::string>& of_ranks, const std::string& place);

class SharedImport {
 public:
  static constexpr std::size_t kLookEvery = 16;  // samples between checks whether another rank has failed

  // `unit`: "images", for progress. The arguments must outlive the object.
  SharedImport(const ShardOptions& options, const ImportTeam& team, const char* unit);

  // Makes one shard; returns none if stopped(). `done`: samples that this rank has made; the callee counts them.
  using Make = std::function<std::optional<ShardNote>(const PlannedShard& shard, LongWork& work, std::int64_t& done)>;
  // Whether a shard with this note can be kept.
  using Keeps = std::function<bool(const ShardNote& note)>;
  // Makes the shards that are missing, each on one rank. Collective.
  void make(const std::vector<PlannedShard>& shards, const Make& make, const Keeps& keeps);

  // For Make: the path of the shard's file, the header that finish() completes, and whether another rank has failed.
  std::string path(const PlannedShard& shard) const { return folder_.now(shard); }
  static ShardHeader header_of(const SourceInfo& info);
  bool stopped() const { return folder_.stopped(); }
  // Publishes the note of a shard whose file is published; adds all to it but `damaged`.
  ShardNote keep(const PlannedShard& shard, std::int64_t samples, const Statistics& statistics,
                 std::vector<std::int32_t> labels, ShardNote note = {}) const;

  // Completes the headers and renames the folder; `damaged`: what was left out before shards were made. Collective.
  ImportWritten finish(const SourceInfo& info, std::vector<std::string> damaged = {});

 private:
  std::vector<std::size_t> missing(const Keeps& keeps);
  void make_missing(const std::vector<std::size_t>& missing, const Make& make);
  void share_notes();
  ImportWritten summary(const SourceInfo& info) const;

  const ImportTeam& team_;
  const char* unit_;
  const ImportFolder folder_;
  std::vector<PlannedShard> shards_;
  std::vector<std::optional<ShardNote>> notes_;  // [shard]; first of this rank, then of all
  std::int64_t kept_ = 0, changed_ = 0;
};

}  // namespace echelon::inline data
