// SPDX-License-Identifier: Apache-2.0
#include "base/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/launchers.hpp"
#include "base/log.hpp"
#include "base/standard_output.hpp"
#include "base/text.hpp"

namespace echelon::inline base {
namespace {

constexpr double kDrawEvery_s = 0.2, kFirstDrawing_s = 0.5;
constexpr int kBarCells = 24;

// Where the launcher gives every rank a pseudo-terminal, this checks the launcher's own standard output.
bool stdout_is_terminal() {
  if (::isatty(STDOUT_FILENO) == 0) return false;
  if (const LauncherTraits* launcher = launcher_of_process(); launcher == nullptr || !launcher->terminals) return true;
  std::error_code error;
  const std::string parents = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/1", ::getppid()), error).string();
  return !error && (parents.starts_with("/dev/pts/") || parents.starts_with("/dev/tty"));
}

}  // namespace

ProgressStyle progress_style(const std::string& requested) {
  if (requested == "bar") return ProgressStyle::bar;
  if (requested == "lines") return ProgressStyle::lines;
  if (requested == "none") return ProgressStyle::none;
  return stdout_is_terminal() ? ProgressStyle::bar : ProgressStyle::lines;
}

std::string left_text(double seconds) {
  if (seconds < 1) return "under 1 s";
  return seconds < 120 ? fmt::format("{:.0f} s", seconds) : seconds_text(seconds);
}

std::string bar_text(double part, int width) {
  const int full = std::clamp(static_cast<int>(part * width), 0, width);
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(width - full), '.') + "]";
}

LongWork::LongWork(std::string what, std::string unit, std::int64_t total, ProgressStyle style, double every_s,
                   const Clock& clock, std::function<void(const std::string&)> say)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      style_(style),
      every_s_(style == ProgressStyle::bar ? kDrawEvery_s : every_s),
      clock_(clock),
      say_(std::move(say)),
      start_s_(clock.now_s()),
      next_s_(start_s_ + (style == ProgressStyle::bar ? kFirstDrawing_s : every_s)) {}

LongWork::~LongWork() {
  if (!drawn_) return;
  draw_over_line("");
}

// "evaluation: 120 of 400 batches, 30 %, 12/s, 23 s left", "import: 12,000 samples, 400/s, 30 s so far".
std::string LongWork::text(std::int64_t done, double now_s) const {
  const double seconds = std::max(1e-9, now_s - start_s_), rate = static_cast<double>(done) / seconds;
  std::string text = what_ + ": " + count_text(done);
  if (total_ <= 0) return text + fmt::format(" {}, {}/s, {} so far", unit_, rate_text(rate), seconds_text(seconds));
  const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
  text += fmt::format(" of {} {}, {:.0f} %, {}/s", count_text(total_), unit_, 100 * part, rate_text(rate));
  if (done > 0)
    text += fmt::format(", {} left", left_text(static_cast<double>(std::max<std::int64_t>(0, total_ - done)) / rate));
  return text;
}

void LongWork::at(std::int64_t done) {
  if (style_ == ProgressStyle::none) return;
  const double now_s = clock_.now_s();
  if (now_s < next_s_) return;
  next_s_ = now_s + every_s_;
  const std::string line = text(done, now_s);
  if (style_ == ProgressStyle::lines) {
    if (say_)
      say_(line);
    else
      log_info("{}", line);
    return;
  }
  const double part = total_ > 0 ? static_cast<double>(done) / static_cast<double>(total_) : 0;
  draw_over_line((total_ > 0 ? bar_text(part, kBarCells) + " " : "") + line);
  drawn_ = true;
}

}  // namespace echelon::inline base
