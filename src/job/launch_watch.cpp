// SPDX-License-Identifier: Apache-2.0
#include "job/launch_watch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/launchers.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/stretch.hpp"
#include "comm/mpi/library.hpp"
#include "job/closing.hpp"
#include "job/launch.hpp"
#include "job/signals.hpp"

namespace echelon::inline job {
namespace {

// The limit of MPI_Init after a TERM, which srun --kill-on-bad-exit sends if another rank has failed in it.
constexpr double kAfterTerm_s = 5;

// Ranks wait for ever for each other if launcher and library speak different protocols (PMI, PMI-2, PMIx).
std::string unmet_note() {
  const LauncherTraits* launcher = launcher_of_process();
  if (launcher == nullptr) return "";
  const std::string library = mpi_version();
  return fmt::format("; if no rank is lost, {} and {} do not fit each other: start it with: {}", launcher->name,
                     library, start_command(library, *launcher));
}

}  // namespace

struct LaunchWatch::Body {
  explicit Body(LaunchWatchOptions options) : options_(std::move(options)) {
    if (!options_.end) options_.end = [](int code) { ::_exit(code); };
    thread_ = std::thread([this] { watch(); });
  }
  ~Body() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  void watch() {
    std::int64_t stretch = -1;
    double passed_s = 0;
    bool continued = false;
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::duration<double>(options_.look_every_s), [this] { return stop_; })) {
      const char* name = current_stretch().name.load(std::memory_order_relaxed);
      const std::int64_t now = current_stretch().number.load(std::memory_order_acquire);
      passed_s = now == stretch ? passed_s + options_.look_every_s : 0;
      stretch = now;
      const bool closing = current_stretch().run_has_ended.load(std::memory_order_relaxed);
      const bool ended_start = name != nullptr && std::string_view(name) == kStartOfMpi && since_term_s() > 0;
      const double limit_s = closing       ? closing_limit_s(options_.limit_s)
                             : ended_start ? std::min(kAfterTerm_s, options_.limit_s)
                                           : options_.limit_s;
      if (name == nullptr || passed_s < limit_s) continue;
      const std::vector<std::string> stopped = stopped_siblings();
      const std::string text =
          fmt::format("{} on {} has been waiting {:.1f} s in {}: a rank does not reach it{}", rank_text(), host_name(),
                      passed_s, name, stopped.empty() ? "" : fmt::format("; stopped: {}", fmt::join(stopped, ", ")));
      if (closing && !stopped.empty() && !continued) {
        log_warning("{}; the run has ended, so the stopped processes are continued to let its launcher return", text);
        continue_siblings();
        continued = true;
        passed_s = 0;
        continue;
      }
      const bool unmet = name == std::string_view(kStartOfMpi) && stopped.empty();
      log_error("{}{}{}", text, unmet ? unmet_note() : "", closing_note());
      flush_log();
      options_.end(give_up_closing(text));
      return;
    }
  }

  LaunchWatchOptions options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

LaunchWatch::LaunchWatch(LaunchWatchOptions options) : body_(std::make_unique<Body>(std::move(options))) {}
LaunchWatch::~LaunchWatch() = default;

}  // namespace echelon::inline job
