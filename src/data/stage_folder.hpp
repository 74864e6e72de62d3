// Copies of shards on a disk of this host (data.stage), which are read in place of those on a shared file system.
//
//   <folder>/echelon-stage-<user id>/<hash of path, size and time of change>/<name of the shard>
//
// A copy appears whole or not at all, and is used again, by later runs too, as long as the shard has the same path,
// size and time of change. A copy in use is held by a shared lock (flock) until its StageFolder is destroyed or its
// process ends. Where room is needed, copies that nobody holds are removed, the least recently used one first. The
// folder is this user's alone (0700). Checksums in shards are those of copies.
//
// One thread; any number of processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace echelon::inline data {

class StageFolder {
 public:
  // `limit_bytes` of all copies; 0: none but the disk's. A tenth of the disk is always left free. EnvironmentError
  // where the folder cannot be made, or is a link or another user's.
  StageFolder(const std::string& folder, std::uint64_t limit_bytes);
  ~StageFolder();
  StageFolder(const StageFolder&) = delete;

  // Where the copy of a shard is, or will be. DataError where there is no such shard.
  std::string path_of(const std::string& shard) const;

  enum class Outcome : std::uint8_t { copied, reused, no_room };
  // Blocks while a shard is copied. no_room: also where the disk is full meanwhile. DataError where the shard cannot be
  // read, or changes while it is copied.
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
