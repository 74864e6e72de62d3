// SPDX-License-Identifier: Apache-2.0
#include "job/watchdog.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string_view>
#include <thread>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/stretch.hpp"
#include "job/signals.hpp"

namespace echelon::inline job {
namespace {

std::string rank_text(const Transport& transport, int rank) {
  if (rank == kDeviceLibrary) return "the library that sums between devices";
  if (rank < 0) return "the message library";
  return fmt::format(
      "rank {} on {}", rank,
      transport.host_names()[static_cast<std::size_t>(transport.hosts()[static_cast<std::size_t>(rank)])]);
}

}  // namespace

void Standstill::tick(double now_s) {
  constexpr double kLate_s = 1;
  if (last_s_ >= 0 && now_s - last_s_ > tick_s_ + kLate_s)
    stops_.push_back({.until_s = now_s, .seconds = now_s - last_s_ - tick_s_});
  last_s_ = now_s;
}

double Standstill::seconds_since(double s) const {
  double seconds = 0;
  for (const Stop& stop : stops_)
    if (stop.until_s > s) seconds += std::min(stop.seconds, stop.until_s - s);
  return seconds;
}

std::string hang_text(const std::vector<WaitView>& waits, const Transport& transport, const PhaseBoard& phase,
                      double timeout_s, const Standstill& standstill) {
  if (phase.name() == kStandBy) return {};
  const double now = transport.clock().now_s();
  const auto too_long = [&](double since_s) { return now - since_s - standstill.seconds_since(since_s) > timeout_s; };
  const auto oldest =
      std::min_element(waits.begin(), waits.end(), [](const auto& a, const auto& b) { return a.since_s < b.since_s; });
  if (oldest != waits.end() && too_long(std::max(oldest->since_s, phase.heard_of_step_s())))
    return fmt::format("{} has been waiting {:.1f} s for {} ({}, channel {}, plan step {}), at step {}, in {}",
                       rank_text(transport, transport.rank()), now - oldest->since_s,
                       rank_text(transport, oldest->peer), oldest->sending ? "sending" : "receiving", oldest->channel,
                       oldest->step, phase.step(), phase.name());
  if (std::string_view(phase.name()) == "data" && too_long(phase.since_s()))
    return fmt::format("{} has been waiting {:.1f} s for its data, at step {}", rank_text(transport, transport.rank()),
                       now - phase.since_s(), phase.step());
  return {};
}

struct Watchdog::Body {
  Body(const Engine& engine, const PhaseBoard& phase, WatchdogOptions options)
      : engine_(engine), phase_(phase), options_(std::move(options)), standstill_(options_.look_every_s) {
    if (!options_.end) options_.end = [](int code) { ::_exit(code); };
    watch_for_second_signals(true);
    enter_stretch(nullptr);
    thread_ = std::thread([this, rank = engine.rank()] {
      set_thread_rank(rank);
      watch();
    });
  }

  ~Body() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
    watch_for_second_signals(false);
    enter_stretch("the end of the run");
  }

  void watch() {
    standstill_.tick(engine_.transport().clock().now_s());
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::duration<double>(options_.look_every_s), [this] { return stop_; })) {
      lock.unlock();
      standstill_.tick(engine_.transport().clock().now_s());
      if (check_once()) return;
      lock.lock();
    }
  }

  // Returns true once the end was called.
  bool check_once() {
    if (options_.look) options_.look();
    if (const int signal = second_signal(); signal != 0) {
      end(128 + signal, fmt::format("ended at once by a second SIG{}, without another checkpoint",
                                    signal == SIGINT ? "INT" : "TERM"));
      return true;
    }
    for (const WatchedRank& other : options_.others)
      if (is_gone(other.process)) {
        end_for_lost_rank(other);
        return true;
      }
    const std::string hang =
        hang_text(engine_.waits(), engine_.transport(), phase_, options_.hang_timeout_s, standstill_);
    if (!hang.empty()) {
      end(kExitLostRank, hang + stopped_text());
      return true;
    }
    if (since_term_s() > options_.term_deadline_s) {
      end(128 + SIGTERM, "ended by SIGTERM: the step did not finish in time for another checkpoint");
      return true;
    }
    return false;
  }

  // A peer may itself be waiting for a stopped process of this host, which the message library does not name.
  std::string stopped_text() const {
    std::string text;
    for (const WatchedRank& other : options_.others)
      if (is_stopped(other.process))
        text += fmt::format("; the process of {} is stopped", rank_text(engine_.transport(), other.rank));
    return text;
  }

  // All ranks of the host detect it at once; the first one reports it. A rank that ended by its own error has already
  // reported.
  void end_for_lost_rank(const WatchedRank& lost) {
    const std::string reason =
        fmt::format("{} was lost: its process (PID {}) was killed or crashed, at step {}, in {}",
                    rank_text(engine_.transport(), lost.rank), lost.process.substr(0, lost.process.find(' ')),
                    phase_.step(), phase_.name());
    const bool first = record_exit(kExitLostRank, reason);
    if (first) {
      log_error("{}", reason);
      record_rank_error(reason);
    }
    leave(reason, lost.rank, first);
    flush_log();
    options_.end(kExitLostRank);
  }

  void end(int code, const std::string& reason) {
    log_error("{}", reason);
    flush_log();
    record_rank_error(reason);
    leave(reason, -1, record_exit(code, reason));
    flush_log();
    options_.end(code);
  }

  void leave(const std::string& reason, int lost, bool first) const {
    if (options_.leave) options_.leave(reason, lost, first);
  }

  bool record_exit(int code, const std::string& reason) {
    try {
      return !options_.record_exit || options_.record_exit(code, reason);
    } catch (const std::exception& error) {
      log_error("status.json could not be written: {}", error.what());
      return true;
    }
  }

  void record_rank_error(const std::string& reason) {
    try {
      if (options_.record_rank_error) options_.record_rank_error(reason);
    } catch (const std::exception& error) {
      log_error("the error file of this rank could not be written: {}", error.what());
    }
  }

  const Engine& engine_;
  const PhaseBoard& phase_;
  WatchdogOptions options_;
  Standstill standstill_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

Watchdog::Watchdog(const Engine& engine, const PhaseBoard& phase, WatchdogOptions options)
    : body_(std::make_unique<Body>(engine, phase, std::move(options))) {}
Watchdog::~Watchdog() = default;

}  // namespace echelon::inline job
