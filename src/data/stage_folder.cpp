// SPDX-License-Identifier: Apache-2.0
#include "data/stage_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"

namespace echelon::inline data {
namespace {

namespace fs = std::filesystem;

constexpr double kLeftFree = 0.1;      // part of the disk
constexpr double kAbandoned_s = 3600;  // an unfinished copy without a write for this long is abandoned
constexpr std::size_t kBlock = std::size_t{4} << 20;
constexpr const char* kUnfinished = ".tmp-";

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw DataError(fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

struct stat status_of(const std::string& shard) {
  struct stat status {};
  if (::stat(shard.c_str(), &status) != 0) fail(shard, "cannot be read");
  return status;
}

std::string key_of(const std::string& shard, const struct stat& status) {
  return hex64(checksum64(fmt::format("{} {} {}.{}", fs::absolute(shard).lexically_normal().string(), status.st_size,
                                      status.st_mtim.tv_sec, status.st_mtim.tv_nsec)));
}

// Removes the file while it holds the lock, so that a process that opened it earlier finds that it has no name.
void remove_if_idle(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return;
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
  ::close(file);
  ::rmdir(fs::path(path).parent_path().c_str());  // succeeds only if it is empty now
}

struct Copy {
  std::string path;
  std::uint64_t bytes = 0;
  timespec used = {};
};

// Returns copies, least recently used first. Removes abandoned unfinished copies on the way.
std::vector<Copy> copies_in(const std::string& folder) {
  std::vector<Copy> found;
  std::error_code gone;  // other processes remove copies too
  for (auto at = fs::recursive_directory_iterator(folder, gone); !gone && at != fs::recursive_directory_iterator();
       at.increment(gone)) {
    const std::string path = at->path().string();
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (at->path().filename().string().find(kUnfinished) == std::string::npos)
      found.push_back({path, static_cast<std::uint64_t>(status.st_size), status.st_mtim});
    else if (std::difftime(std::time(nullptr), status.st_mtim.tv_sec) > kAbandoned_s)
      remove_if_idle(path);
  }
  std::sort(found.begin(), found.end(), [](const Copy& a, const Copy& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  return found;
}

}  // namespace

StageFolder::StageFolder(const std::string& folder, std::uint64_t limit_bytes)
    : folder_(fmt::format("{}/echelon-stage-{}", folder, ::geteuid())), limit_(limit_bytes) {
  make_folders(folder);
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST)
    throw EnvironmentError(fmt::format("{}: cannot be created: {}", folder_, std::strerror(errno)));
  struct stat status {};
  if (::lstat(folder_.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid())
    throw EnvironmentError(
        fmt::format("{}: is not a folder that this user owns; remove it, or choose another data.stage", folder_));
}

StageFolder::~StageFolder() {
  for (const int file : held_) ::close(file);
}

std::string StageFolder::path_of(const std::string& shard) const {
  return fmt::format("{}/{}/{}", folder_, key_of(shard, status_of(shard)), fs::path(shard).filename().string());
}

StageFolder::Outcome StageFolder::add(const std::string& shard) {
  const struct stat before = status_of(shard);
  const std::string to = path_of(shard);
  if (hold(to)) return Outcome::reused;
  if (!make_room(static_cast<std::uint64_t>(before.st_size))) return Outcome::no_room;
  try {
    make_folders(fs::path(to).parent_path().string());
    copy(shard, to);
  } catch (const EnvironmentError&) {
    return Outcome::no_room;
  }
  if (key_of(shard, status_of(shard)) != key_of(shard, before)) {
    ::unlink(to.c_str());
    throw DataError(fmt::format("{}: changed while it was copied to {}", shard, folder_));
  }
  return hold(to) ? Outcome::copied : Outcome::no_room;
}

// Returns false if there is no copy.
bool StageFolder::hold(const std::string& copy) {
  const int file = ::open(copy.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return false;
  struct stat status {};
  const bool held = ::flock(file, LOCK_SH | LOCK_NB) == 0 && ::fstat(file, &status) == 0 && status.st_nlink > 0;
  if (held) held_.push_back(file), ::futimens(file, nullptr);
  if (!held) ::close(file);
  return held;
}

bool StageFolder::make_room(std::uint64_t bytes) {
  std::vector<Copy> copies = copies_in(folder_);
  const auto fits = [&] {
    std::uint64_t all = bytes;
    for (const Copy& copy : copies) all += copy.bytes;
    std::error_code unknown;
    const fs::space_info disk = fs::space(folder_, unknown);
    const bool on_disk = unknown || static_cast<double>(disk.available) - static_cast<double>(bytes) >=
                                        kLeftFree * static_cast<double>(disk.capacity);
    return on_disk && (limit_ == 0 || all <= limit_);
  };
  for (std::size_t oldest = 0; !fits(); ++oldest) {
    if (oldest >= copies.size()) return false;
    remove_if_idle(copies[oldest].path);
    if (!fs::exists(copies[oldest].path)) copies[oldest].bytes = 0;
  }
  return true;
}

void StageFolder::copy(const std::string& shard, const std::string& to) const {
  const int from = ::open(shard.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) fail(shard, "cannot be read");
  const std::string temporary = fmt::format("{}{}{}", to, kUnfinished, ::getpid());
  const int file = create_file(temporary);
  const auto close_both = [&] {
    ::close(from);
    if (file >= 0) ::close(file);
  };
  try {
    if (file < 0) throw EnvironmentError(fmt::format("{}: cannot be written: {}", temporary, std::strerror(errno)));
    const auto block = std::make_unique_for_overwrite<char[]>(kBlock);
    for (std::uint64_t at = 0;;) {
      const ssize_t got = ::pread(from, block.get(), kBlock, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(shard, "cannot be read");
      if (got == 0) break;
      write_at(file, temporary, block.get(), static_cast<std::size_t>(got), at);
      at += static_cast<std::uint64_t>(got);
    }
  } catch (...) {
    close_both();
    ::unlink(temporary.c_str());
    throw;
  }
  close_both();
  publish_file(temporary, to);
}

}  // namespace echelon::inline data
