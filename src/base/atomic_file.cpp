// SPDX-License-Identifier: Apache-2.0
#include "base/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.hpp"
#include "base/file_faults.hpp"

namespace echelon::inline base {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  throw EnvironmentError(fmt::format("{}: {}: {}", path, what, std::strerror(error)));
}

// Syncs a file or a folder to the disk.
void sync_path(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) fail(path, "cannot be opened to sync it", errno);
  const int status = sync_descriptor(fd);
  const int error = errno;
  ::close(fd);
  if (status != 0 && error != EINVAL) fail(path, "cannot be synced to disk", error);
}

}  // namespace

void publish_file(const std::string& temporary, const std::string& path) {
  try {
    sync_path(temporary, O_RDONLY);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) fail(path, "cannot replace the old file", errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  sync_path(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
}

int create_file(const std::string& path, unsigned mode) {
  ::unlink(path.c_str());  // may be left by an earlier process with this id
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

void write_at(int file, const std::string& path, const void* data, std::size_t bytes, std::uint64_t offset) {
  const auto* from = static_cast<const char*>(data);
  for (std::size_t at = 0; at < bytes;) {
    const ssize_t wrote = write_some_at(file, from + at, bytes - at, offset + at);
    if (wrote < 0 && errno != EINTR) fail(path, "cannot be written", errno);
    if (wrote > 0) at += static_cast<std::size_t>(wrote);
  }
}

void sync_file(const std::string& path) { sync_path(path, O_RDONLY); }

void write_file_whole(const std::string& path, std::string_view content) {
  static std::atomic<int> count{0};  // two threads may write one file
  const std::string temporary = fmt::format("{}.tmp-{}-{}", path, ::getpid(), count++);
  const int fd = create_file(temporary);
  if (fd < 0) fail(path, "cannot be written", errno);
  int error = 0;
  for (std::size_t at = 0; at < content.size() && error == 0;) {
    const ssize_t wrote = write_some(fd, content.data() + at, content.size() - at);
    if (wrote < 0 && errno != EINTR) error = errno;
    if (wrote > 0) at += static_cast<std::size_t>(wrote);
  }
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    fail(path, "cannot be written", error);
  }
  publish_file(temporary, path);
}

void make_folders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw EnvironmentError(fmt::format("{}: the folder cannot be created: {}", path, error.message()));
}

void require_within(const std::string& parent, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path outer = fs::weakly_canonical(fs::absolute(parent), error);
  const fs::path inner = error ? fs::path() : fs::weakly_canonical(fs::absolute(folder), error);
  if (error) throw EnvironmentError(fmt::format("{}: its path cannot be resolved: {}", folder, error.message()));
  if (const fs::path way = inner.lexically_relative(outer); way.empty() || *way.begin() == "..")
    throw EnvironmentError(
        fmt::format("{}: a symbolic link leads from it out of {}, to {}; remove the link, or make {} itself a link",
                    folder, parent, inner.string(), parent));
}

std::string read_file_whole(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw EnvironmentError(fmt::format("{}: cannot be read: it is a folder", path));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(path, "cannot be read", errno);
  std::string content;
  std::array<char, 1 << 16> block;
  ssize_t got = 1;
  int read_error = 0;
  while (got != 0 && read_error == 0) {
    got = ::read(fd, block.data(), block.size());
    if (got < 0 && errno != EINTR) read_error = errno;
    if (got > 0) content.append(block.data(), static_cast<std::size_t>(got));
  }
  ::close(fd);
  if (read_error != 0) fail(path, "cannot be read", read_error);
  return content;
}

}  // namespace echelon::inline base
