// SPDX-License-Identifier: Apache-2.0
#include "cli/study_heartbeat.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "base/progress.hpp"
#include "base/text.hpp"
#include "config/parse.hpp"
#include "job/run_folder.hpp"
#include "report/status.hpp"

namespace echelon::cli {

StudyHeartbeat::StudyHeartbeat(const StudyCell& cell, std::int64_t steps) : cell_(cell), steps_(steps) {
  const Config config = load_config(cell.file, cell.sets);
  run_ = run_path(config);
  every_s_ = config.run.heartbeat_s;
  if (progress_style(config.run.progress) == ProgressStyle::lines) thread_ = std::thread([this] { beat(); });
}

StudyHeartbeat::~StudyHeartbeat() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// The step that the newest attempt has reported.
std::int64_t StudyHeartbeat::step() const {
  const std::vector<std::string> attempts = attempts_of(run_);
  const auto status = attempts.empty() ? std::nullopt : read_status(attempts.back());
  return status ? status->step : 0;
}

void StudyHeartbeat::beat() {
  const double start_s = now_s();
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::duration<double>(every_s_), [this] { return over_; })) {
    const std::int64_t done = step();
    const std::string text =
        fmt::format("{}step {}{}, running for {}", cell_.text.empty() ? "" : cell_.text + ": ", count_text(done),
                    steps_ > 0 ? " of " + count_text(steps_) : "", seconds_text(now_s() - start_s));
    fmt::print("{:>9}  {:>5}  {}\n", "..", cell_.ranks, text);
    std::fflush(stdout);
  }
}

}  // namespace echelon::cli
