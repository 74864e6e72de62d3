#include "cli/set_up_limit.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/error.hpp"
#include "base/process.hpp"

namespace echelon::cli {

SetUpLimit::~SetUpLimit() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  watch_.join();
}

void SetUpLimit::wait(int rank, double limit_s) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, std::chrono::duration<double>(limit_s), [this] { return done_; })) return;
  std::fprintf(stderr,
               "echelon: error: rank %d on %s has not met all other ranks in %g s: MPI cannot reach some of them. "
               "Start `echelon bench network` on two hosts at a time to find which\n",
               rank, host_name().c_str(), limit_s);
  std::fflush(nullptr);
  std::_Exit(kExitLostRank);
}

}  // namespace echelon::cli
