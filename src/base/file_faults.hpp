// The calls by which a run writes its files, so that a test, or a run with [fault], can let them fail. Without faults a
// call costs a branch more than the system's own.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace echelon::inline base {

// Any thread.
class FileFaults {
 public:
  virtual ~FileFaults() = default;
  // A write is about to begin: 0, or the error by which it fails; `bytes` may become less, at least 1.
  virtual int write_begins(std::size_t& bytes) = 0;
  // As fsync(2).
  virtual int sync(int fd) = 0;
  // A library is about to write so many bytes: 0, or the error by which it fails.
  virtual int write_error(std::size_t bytes) = 0;
  // A library has read these bytes of content from a file.
  virtual void have_read(std::string_view path, void* data, std::size_t bytes) = 0;
};

// Those of this process; null: none. What is set outlives all calls.
inline std::atomic<FileFaults*> file_faults = nullptr;

// write(2), pwrite(2), fsync(2).
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
