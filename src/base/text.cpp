#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/check.hpp"

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

void Table::row(std::vector<std::string> cells) {
  ECHELON_CHECK_EQ(cells.size(), header_.size(), "a table row has one cell a column");
  rows_.push_back(std::move(cells));
}

namespace {

// Characters, not bytes, of UTF-8 text.
std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& cell, std::size_t width, bool right) {
  const std::string space(width - std::min(width, display_width(cell)), ' ');
  return right ? space + cell : cell + space;
}

bool begins_like_number(const std::string& cell) {
  if (cell.empty() || cell == "-") return true;
  const std::size_t at = cell[0] == '-' || cell[0] == '+' || cell[0] == '~' ? 1 : 0;
  return at < cell.size() && std::isdigit(static_cast<unsigned char>(cell[at]));
}

}  // namespace

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < header_.size(); ++c) {
    widths.push_back(display_width(header_[c]));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  return widths;
}

std::vector<bool> Table::right_set() const {
  std::vector<bool> right(header_.size(), !rows_.empty());
  for (std::size_t c = 0; c < header_.size(); ++c)
    for (const auto& row : rows_) right[c] = right[c] && begins_like_number(row[c]);
  return right;
}

std::string Table::text() const {
  const auto width = widths();
  const auto right = right_set();
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    for (std::size_t c = 0; c < cells.size(); ++c) out += (c ? "  " : "") + padded(cells[c], width[c], right[c]);
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
  };
  std::size_t total = 2 * (header_.size() - 1);
  for (std::size_t w : width) total += w;
  std::string out = line(header_) + std::string(total, '-') + "\n";
  for (const auto& row : rows_) out += line(row);
  return out;
}

std::string Table::markdown() const {
  Table escaped = *this;  // GitHub splits cells at bars, in code spans too
  for (auto& row : escaped.rows_)
    for (std::string& cell : row) cell = replaced(cell, "|", "\\|");
  const auto width = escaped.widths();
  const auto right = escaped.right_set();
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out = "|";
    for (std::size_t c = 0; c < cells.size(); ++c) out += " " + padded(cells[c], width[c], right[c]) + " |";
    return out + "\n";
  };
  std::string out = line(header_) + "|";
  for (std::size_t c = 0; c < header_.size(); ++c) out += std::string(width[c] + 1, '-') + (right[c] ? ":|" : "-|");
  out += "\n";
  for (const auto& row : escaped.rows_) out += line(row);
  return out;
}

std::string Table::csv() const {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string out;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      std::string cell = cells[c];
      if (cell.find_first_of(",\"\n") != std::string::npos) {
        for (std::size_t at = 0; (at = cell.find('"', at)) != std::string::npos; at += 2) cell.insert(at, "\"");
        cell = "\"" + cell + "\"";
      }
      if (c > 0) out += ',';
      out += cell;
    }
    return out + "\n";
  };
  std::string out = line(header_);
  for (const auto& row : rows_) out += line(row);
  return out;
}

}  // namespace echelon::inline base
