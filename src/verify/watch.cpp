// SPDX-License-Identifier: Apache-2.0
#include "verify/watch.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"

namespace echelon::verify {
namespace {

constexpr double kLook_s = 0.25;
constexpr double kAfterRank0_s = 5;  // time that the other ranks leave rank 0 for its report

std::string path_of(const VerifyContext& context, int rank) { return fmt::format("{}/at-{}", context.folder, rank); }

}  // namespace

CheckWatch::CheckWatch(const VerifyContext& context, const std::vector<VerifyCheck>& checks, double grace_s,
                       GiveUp give_up)
    : context_(context), checks_(checks), grace_s_(grace_s), give_up_(std::move(give_up)) {
  thread_ = std::thread([this] {
    set_thread_rank(context_.rank);
    look();
  });
}

CheckWatch::~CheckWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void CheckWatch::write(std::size_t number, char state, const std::string& wrong) const {
  std::ofstream(path_of(context_, context_.rank), std::ios::trunc) << number << ' ' << state << ' ' << wrong << '\n';
}

void CheckWatch::begins(std::size_t number) {
  write(number, 'b', "");
  const std::lock_guard lock(mutex_);
  number_ = number, since_s_ = now_s(), failed_s_ = 0;
}

void CheckWatch::ends(std::size_t number, const std::string& wrong) {
  write(number, wrong.empty() ? 'e' : 'f', wrong);
  const std::lock_guard lock(mutex_);
  if (!wrong.empty()) failed_s_ = now_s();
}

void CheckWatch::is_over() {
  const std::lock_guard lock(mutex_);
  since_s_ = 0;
}

std::string CheckWatch::missing(std::size_t number, bool& failed) const {
  std::string text;
  for (int rank = 0; rank < context_.ranks; ++rank) {
    std::ifstream file(path_of(context_, rank));
    std::size_t at = 0;
    char state = 0;
    std::string wrong;
    file >> at >> state;
    std::getline(file >> std::ws, wrong);
    if (at == number && state == 'e') continue;
    failed |= at == number && state == 'f';
    const std::string where = at == number && state == 'f'   ? wrong
                              : at == number && state == 'b' ? "has not finished this check"
                              : state == 0                   ? "its state is unknown"
                                                             : "has not begun this check";
    text += fmt::format("{}rank {} on {}: {}", text.empty() ? "" : "; ", rank,
                        context_.hosts[static_cast<std::size_t>(rank)], where);
  }
  return text;
}

void CheckWatch::look() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::duration<double>(kLook_s), [this] { return stop_; })) {
    if (since_s_ == 0) continue;
    const std::size_t number = number_;
    const double now = now_s(), seconds = now - since_s_;
    bool failed = false;
    const std::string who = missing(number, failed);
    if (failed && failed_s_ == 0) failed_s_ = now;
    const bool too_long = seconds > checks_[number].limit_s || (failed_s_ > 0 && now - failed_s_ > grace_s_);
    if (!too_long) continue;
    if (context_.rank > 0) {
      const double limit_s =
          (failed_s_ > 0 ? failed_s_ + grace_s_ : since_s_ + checks_[number].limit_s) + kAfterRank0_s;
      if (now < limit_s) continue;
      std::_Exit(kExitUnmet);
    }
    give_up_(number, fmt::format("not finished after {:.1f} s; {}", seconds, who), seconds);
    std::fflush(nullptr);
    std::_Exit(kExitUnmet);
  }
}

}  // namespace echelon::verify
