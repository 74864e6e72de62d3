// SPDX-License-Identifier: Apache-2.0
// Ends this process if a collective MPI call, which has no time limit of its own, does not return.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace echelon::cli {

class SetUpLimit {
 public:
  // Runs from construction to destruction. After `limit_s` it prints this rank, its host and the other end of a blocked
  // link, and ends the process by _exit(7). Ranks that know of no blocked link wait 2 s longer.
  SetUpLimit(int rank, double limit_s) : watch_([this, rank, limit_s] { wait(rank, limit_s); }) {}
  ~SetUpLimit();
  SetUpLimit(const SetUpLimit&) = delete;

 private:
  void wait(int rank, double limit_s);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread watch_;
};

}  // namespace echelon::cli
