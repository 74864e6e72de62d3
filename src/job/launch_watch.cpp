#include "job/launch_watch.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/stretch.hpp"

namespace echelon::inline job {
namespace {

// "rank 3", by the launcher's environment, since MPI may not be there yet.
std::string rank_text() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* rank = std::getenv(name)) return fmt::format("rank {}", rank);
  return "this process";
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
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::duration<double>(options_.look_every_s), [this] { return stop_; })) {
      const char* name = current_stretch().name.load(std::memory_order_relaxed);
      const std::int64_t now = current_stretch().number.load(std::memory_order_acquire);
      passed_s = now == stretch ? passed_s + options_.look_every_s : 0;
      stretch = now;
      if (name == nullptr || passed_s < options_.limit_s) continue;
      end(name, passed_s);
      return;
    }
  }

  void end(const char* stretch, double passed_s) {
    std::string stopped;
    for (const std::string& process : stopped_siblings()) stopped += fmt::format("; {} is stopped", process);
    log_error("{} on {} has been waiting {:.1f} s in {}: a rank does not come to it{}", rank_text(), host_name(),
              passed_s, stretch, stopped);
    flush_log();
    options_.end(kExitLostRank);
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
