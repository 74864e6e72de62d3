// Ends this process where a collective call of MPI, which has no limit of its own, does not return.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace echelon::cli {

class SetUpLimit {
 public:
  // For as long as it lives, but no longer than `limit_s`: then this rank and its host are named, with the other end of
  // a link that is blocked, and the process ends by _exit(7); ranks that know of none wait 2 s longer.
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
