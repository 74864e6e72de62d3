// Limits of checks: a thread that looks at the time, and at the files by which ranks tell each other where they are.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "verify/check.hpp"

namespace echelon::verify {

// Each rank keeps a file <folder>/at-<rank>: the number of its check, whether it has ended it, and what went wrong.
// Where a check does not end on every rank by its limit, or within `grace_s` after it has failed on one, rank 0 calls
// `give_up` with what it knows of the others and ends its process with 8; so do the others, a little later.
class CheckWatch {
 public:
  using GiveUp = std::function<void(std::size_t number, const std::string& why, double seconds)>;
  CheckWatch(const VerifyContext& context, const std::vector<VerifyCheck>& checks, double grace_s, GiveUp give_up);
  ~CheckWatch();
  CheckWatch(const CheckWatch&) = delete;

  // Of this rank: it begins a check; has ended it (`wrong`: "" where it passed); all ranks have ended it.
  void begins(std::size_t number);
  void ends(std::size_t number, const std::string& wrong);
  void is_over();

 private:
  void look();
  void write(std::size_t number, char state, const std::string& wrong) const;
  // Of the ranks that have not ended it, by their files; `failed`: whether one has failed.
  std::string missing(std::size_t number, bool& failed) const;

  const VerifyContext& context_;
  const std::vector<VerifyCheck>& checks_;
  const double grace_s_;
  GiveUp give_up_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::size_t number_ = 0;
  double since_s_ = 0, failed_s_ = 0;  // 0: none is under way; has not failed
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace echelon::verify
