// What a person sees of work that takes long: on a terminal a bar that is drawn over itself, elsewhere a heartbeat line
// in the log now and then. Of evaluations, imports and the cells of studies; training's own is
// train/hooks/progress.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.hpp"

namespace echelon::inline base {

enum class ProgressStyle : std::uint8_t { none, lines, bar };

inline constexpr double kHeartbeat_s = 30;  // where no key says otherwise

// Of "auto", "bar", "lines" or "none": auto is a bar where standard output is a terminal, through mpirun too.
ProgressStyle progress_style(const std::string& wanted);

// "[#####.....]" of `width` cells between the brackets.
std::string bar_text(double part, int width);
// Remaining time, rounded: "under 1 s", "16 s", "25 min".
std::string left_text(double seconds);

class LongWork {
 public:
  // "evaluation", "batches": `total` of them; 0: not known. A line every `every_s` seconds at most, the first one after
  // so many; a bar every 0.2 s, the first one after 0.5 s. `say`: where lines go, null: log_info, which rank 0 prints.
  LongWork(std::string what, std::string unit, std::int64_t total, ProgressStyle style, double every_s = kHeartbeat_s,
           const Clock& clock = host_clock(), std::function<void(const std::string&)> say = nullptr);
  ~LongWork();  // wipes the bar
  LongWork(const LongWork&) = delete;

  // So many are done. Costs a reading of the clock.
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
