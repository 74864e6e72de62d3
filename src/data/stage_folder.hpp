// SPDX-License-Identifier: Apache-2.0
// Copies of shards on a local disk (data.stage), which are read instead of those on a shared file system.
//
//   <folder>/echelon-stage-<user id>/<hash of path, size and time of change>/<name of the shard>
//
// A copy appears whole or not at all. It is reused, also by later runs, as long as the shard has the same path, size
// and modification time. A copy in use is held by a shared lock (flock) until its StageFolder is destroyed or its
// process ends. To make room, copies that nobody holds are removed, least recently used first. Only this user can
// access the folder (0700). Copies contain the checksums of their shards.
//
// One thread may use it; any number of processes may share the folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace echelon::inline data {

class StageFolder {
 public:
  // `limit_bytes`: limit for all copies; 0: limited by the disk only. A tenth of the disk is always left free. Throws
  // EnvironmentError if the folder cannot be created, is a link, or belongs to another user.
  StageFolder(const std::string& folder, std::uint64_t limit_bytes);
  ~StageFolder();
  StageFolder(const StageFolder&) = delete;

  // Returns the path of a shard's copy, which need not exist yet. Throws DataError if there is no such shard.
  std::string path_of(const std::string& shard) const;

  enum class Outcome : std::uint8_t { copied, reused, no_room };
  // Blocks while a shard is copied. no_room: also if the disk fills up meanwhile. Throws DataError if the shard cannot
  // be read, or changes while it is copied.
  Outcome add(const std::string& shard);

 private:
  bool hold(const std::string& copy);
  bool make_room(std::uint64_t bytes);
  void copy(const std::string& shard, const std::string& to) const;

  std::string folder_;
  std::uint64_t limit_;
  std::vector<int> held_;  // descriptors of copies in use
};

}  // namespace echelon::inline data
