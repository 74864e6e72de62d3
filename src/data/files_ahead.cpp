// SPDX-License-Identifier: Apache-2.0
#include "data/files_ahead.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace echelon::inline data {

// Threads wait for the file system, not for processors.
FilesAhead::FilesAhead() {
  constexpr int kInFlight = 4;
  for (int i = 0; i < kInFlight; ++i) threads_.emplace_back([this] { run(); });
}

FilesAhead::~FilesAhead() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void FilesAhead::expect(const std::vector<std::string>& paths) {
  {
    const std::lock_guard lock(mutex_);
    paths_.insert(paths_.end(), paths.begin(), paths.end());
  }
  changed_.notify_all();
}

void FilesAhead::run() {
  for (;;) {
    std::string path;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !paths_.empty(); });
      if (stopping_) return;
      path = std::move(paths_.front());
      paths_.pop_front();
    }
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) continue;
    static_cast<void>(::posix_fadvise(file, 0, 0, POSIX_FADV_WILLNEED));
    ::close(file);
  }
}

}  // namespace echelon::inline data
