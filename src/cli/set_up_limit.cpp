// SPDX-License-Identifier: Apache-2.0
#include "cli/set_up_limit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/error.hpp"
#include "base/process.hpp"
#include "comm/links/unanswered.hpp"

namespace echelon::cli {
namespace {

constexpr std::chrono::seconds kForOthers{2};

}  // namespace

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
  lock.unlock();
  const std::vector<std::string> blocked = unanswered_hosts();
  lock.lock();
  if (done_) return;
  // The first rank to exit kills the launch, so a rank that can name the link exits before ranks that only wait.
  if (blocked.empty() && changed_.wait_for(lock, kForOthers, [this] { return done_; })) return;
  const std::string why =
      blocked.empty()
          ? "MPI cannot reach some of them. Start `echelon bench network` on two hosts at a time to find which"
          : fmt::format("the link between {} and {} is blocked: no message sent there is answered", host_name(),
                        fmt::join(blocked, ", "));
  fmt::print(stderr, "echelon: error: rank {} on {} has not met all other ranks in {:g} s: {}\n", rank, host_name(),
             limit_s, why);
  std::fflush(nullptr);
  std::_Exit(kExitLostRank);
}

}  // namespace echelon::cli
