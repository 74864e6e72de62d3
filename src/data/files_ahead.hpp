// SPDX-License-Identifier: Apache-2.0
// Has files read into the system's cache before they are needed, several at a time: with one sample a file, a loader
// would otherwise wait for each open and read in turn.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace echelon::inline data {

class FilesAhead {
 public:
  FilesAhead();
  ~FilesAhead();
  FilesAhead(const FilesAhead&) = delete;

  // Asks for files that will be needed soon, in this order. Files that cannot be opened are passed over: who needs them
  // says so. Returns at once.
  void expect(const std::vector<std::string>& paths);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> paths_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace echelon::inline data
