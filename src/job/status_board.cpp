// SPDX-License-Identifier: Apache-2.0
#include "job/status_board.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/log.hpp"

namespace echelon::inline job {
namespace {

// Writes the attempt's name for `echelon supervise`, which started the launcher of this rank.
void name_attempt(const std::string& attempt) {
  const char* file = std::getenv("ECHELON_ATTEMPT_FILE");
  if (file == nullptr || *file == '\0') return;
  try {
    write_file_whole(file, std::filesystem::absolute(attempt).string() + "\n");
  } catch (const Error& error) {
    log_debug("the attempt could not be named to `echelon supervise`: {}", error.what());
  }
}

}  // namespace

StatusBoard::~StatusBoard() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StatusBoard::open(const RunFolder& folder, const Provenance& provenance) {
  const std::lock_guard lock(mutex_);
  attempt_ = folder.attempt;
  folder_ = folder;
  provenance_ = provenance;
}

void StatusBoard::start_beating() {
  write_running(attempt_, running_now());
  name_attempt(attempt_);
  thread_ = std::thread([this] { beat(); });
}

Status StatusBoard::running_now() const {
  const std::lock_guard lock(mutex_);
  Status status;
  status.step = step_.load(std::memory_order_relaxed);
  status.checkpoint = checkpoint_;
  status.best = best_;
  status.damaged = damaged_;
  status.provenance = provenance_;
  return status;
}

// Writes files without holding the mutex: a hanging file system must not block the loop and the watchdog.
void StatusBoard::beat() {
  std::int64_t written = -1;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::duration<double>(kBeat_s), [this] { return ended_; })) {
    lock.unlock();
    const Status status = running_now();
    try {
      if (status.step != written) write_running(attempt_, status);
      written = status.step;
    } catch (const Error& error) {
      log_debug("status.json was not rewritten: {}", error.what());
    }
    lock.lock();
  }
}

void StatusBoard::set_checkpoint(const std::string& newest) {
  const std::lock_guard lock(mutex_);
  checkpoint_ = newest;
}

void StatusBoard::set_best(const std::string& best) {
  const std::lock_guard lock(mutex_);
  best_ = best;
}

void StatusBoard::set_damaged(const std::vector<std::string>& damaged) {
  const std::lock_guard lock(mutex_);
  damaged_ = damaged;
}

std::string StatusBoard::checkpoint() const {
  const std::lock_guard lock(mutex_);
  return checkpoint_;
}

RunFolder StatusBoard::folder() const {
  const std::lock_guard lock(mutex_);
  return folder_;
}

Provenance StatusBoard::provenance() const {
  const std::lock_guard lock(mutex_);
  return provenance_;
}

void StatusBoard::pass_to(const std::string& process, bool writes) {
  if (!is_open()) return;
  {
    const std::lock_guard lock(mutex_);
    provenance_.process = process;
  }
  if (writes) write_running(attempt_, running_now());
}

bool StatusBoard::is_open() const {
  const std::lock_guard lock(mutex_);
  return !attempt_.empty();
}

bool StatusBoard::conclude(const std::string& state, int exit_code, const std::string& reason, std::int64_t step) {
  if (!is_open()) return false;
  Status status = running_now();
  status.state = state;
  status.exit_code = exit_code;
  status.reason = reason;
  if (step >= 0) status.step = step;
  return echelon::conclude(attempt_, status);
}

void StatusBoard::write_rank_error(int rank, const std::string& text) {
  if (!is_open() || rank == 0) return;
  write_file_whole(fmt::format("{}/rank-{:04}.err", attempt_, rank), text + "\n");
}

}  // namespace echelon::inline job
