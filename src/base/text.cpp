// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace echelon::inline base {

std::string bytes_text(double bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (std::fabs(bytes) >= 1024 && unit + 1 < units.size()) bytes /= 1024, ++unit;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.2f} {}", bytes, units[unit]);
}

std::string count_text(std::int64_t count) {
  std::string digits = std::to_string(count < 0 ? -count : count);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return (count < 0 ? "-" : "") + digits;
}

std::string rate_text(double rate) {
  if (std::isnan(rate)) return "-";
  return rate < 100 ? fmt::format("{:.{}f}", rate, rate < 10 ? 2 : 1) : count_text(std::llround(rate));
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count_text(count), noun, count == 1 ? "" : noun.ends_with("tch") ? "es" : "s");
}

std::string numbers_text(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ", ") + fmt::format("{:.4g}", value);
  return text;
}

std::string short_count(double count) {
  constexpr std::array units = {"", " k", " M", " G", " T", " P"};
  std::size_t unit = 0;
  while (std::fabs(count) >= 1000 && unit + 1 < units.size()) count /= 1000, ++unit;
  return unit == 0 ? fmt::format("{:.0f}", count) : fmt::format("{:.2f}{}", count, units[unit]);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  const auto minutes = static_cast<std::int64_t>(std::lround(seconds / 60));
  return minutes < 120 ? fmt::format("{} min", minutes) : fmt::format("{} h {:02d} min", minutes / 60, minutes % 60);
}

}  // namespace echelon::inline base
