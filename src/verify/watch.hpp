// SPDX-License-Identifier: Apache-2.0
// Enforces the time limits of checks by a thread that also reads the files in which ranks report their progress.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "verify/check.hpp"

namespace echelon::verify {

// Each rank keeps a file <folder>/at-<rank> with the number of its check, whether it has ended it, and what went wrong.
// If a check does not end on every rank within its limit, or within `grace_s` after it failed on one rank, rank 0 calls
// `give_up` with what it knows of the others and exits with 8; the others exit a little later.
class CheckWatch {
 public:
  using GiveUp = std::function<void(std::size_t number, const std::string& why, double seconds)>;
  CheckWatch(const VerifyContext& context, const std::vector<VerifyCheck>& checks, double grace_s, GiveUp give_up);
  ~CheckWatch();
  CheckWatch(const CheckWatch&) = delete;

  // This rank begins a check; it has ended it (`wrong`: "" if it passed); all ranks have ended it.
  void begins(std::size_t number);
  void ends(std::size_t number, const std::string& wrong);
  void is_over();

 private:
  void look();
  void write(std::size_t number, char state, const std::string& wrong) const;
  // Describes the ranks that have not ended the check, from their files; `failed`: whether it failed on one.
  std::string missing(std::size_t number, bool& failed) const;

  const VerifyContext& context_;
  const std::vector<VerifyCheck>& checks_;
  const double grace_s_;
  GiveUp give_up_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::size_t number_ = 0;
  double since_s_ = 0, failed_s_ = 0;  // 0: no check is running; no check has failed
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace echelon::verify
