// SPDX-License-Identifier: Apache-2.0
// The calls by which a run writes its files. A test, or a run with [fault], can make them fail. Without faults a call
// costs one branch more than the system call.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace echelon::inline base {

// Callable from any thread.
class FileFaults {
 public:
  virtual ~FileFaults() = default;
  // Called before a write. Returns 0, or the error with which it fails. May reduce `bytes`, to at least 1.
  virtual int write_begins(std::size_t& bytes) = 0;
  // Replaces fsync(2).
  virtual int sync(int fd) = 0;
  // Called before a library writes this many bytes. Returns 0, or the error with which the write fails.
  virtual int write_error(std::size_t bytes) = 0;
  // Called after a library has read these bytes of content from a file.
  virtual void have_read(std::string_view path, void* data, std::size_t bytes) = 0;
};

// The faults of this process; null: none. The object must outlive all calls.
inline std::atomic<FileFaults*> file_faults = nullptr;

// Wrappers of write(2), pwrite(2) and fsync(2).
inline bool may_write(std::size_t& bytes) {
  FileFaults* const faults = file_faults.load(std::memory_order_acquire);
  const int error = faults == nullptr ? 0 : faults->write_begins(bytes);
  if (error != 0) errno = error;
  return error == 0;
}
inline ssize_t write_some(int fd, const void* data, std::size_t bytes) {
  return may_write(bytes) ? ::write(fd, data, bytes) : -1;
}
inline ssize_t write_some_at(int fd, const void* data, std::size_t bytes, std::uint64_t offset) {
  return may_write(bytes) ? ::pwrite(fd, data, bytes, static_cast<off_t>(offset)) : -1;
}
inline int sync_descriptor(int fd) {
  FileFaults* const faults = file_faults.load(std::memory_order_acquire);
  return faults == nullptr ? ::fsync(fd) : faults->sync(fd);
}

}  // namespace echelon::inline base
