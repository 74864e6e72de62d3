// SPDX-License-Identifier: Apache-2.0
// Shows people the progress of long work: a bar on a terminal, elsewhere a heartbeat line in the log from time to time.
// Evaluations, imports and the cells of studies use it; training has its own in train/hooks/progress.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.hpp"

namespace echelon::inline base {

enum class ProgressStyle : std::uint8_t { none, lines, bar };

inline constexpr double kHeartbeat_s = 30;  // default if no key sets it

// Parses "auto", "bar", "lines" or "none". auto: a bar if standard output is a terminal, also through mpirun.
ProgressStyle progress_style(const std::string& requested);

// A bar such as "[#####.....]" with `width` cells between the brackets.
std::string bar_text(double part, int width);
// Remaining time, rounded: "under 1 s", "16 s", "25 min".
std::string left_text(double seconds);

class LongWork {
 public:
  // `what`, `unit`: "evaluation", "batches". `total`: 0 if unknown. Prints a line every `every_s` seconds at most, or a
  // bar every 0.2 s, first after `every_s` or 0.5 s. `say`: receives the lines; null: log_info, printed by rank 0.
  LongWork(std::string what, std::string unit, std::int64_t total, ProgressStyle style, double every_s = kHeartbeat_s,
           const Clock& clock = host_clock(), std::function<void(const std::string&)> say = nullptr);
  ~LongWork();  // wipes the bar
  LongWork(const LongWork&) = delete;

  // Reports how many are done. Costs one reading of the clock.
  void at(std::int64_t done);

 private:
  std::string text(std::int64_t done, double now_s) const;

  const std::string what_, unit_;
  const std::int64_t total_;
  const ProgressStyle style_;
  const double every_s_;
  const Clock& clock_;
  const std::function<void(const std::string&)> say_;
  const double start_s_;
  double next_s_;
  bool drawn_ = false;
};

}  // namespace echelon::inline base
