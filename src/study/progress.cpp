// SPDX-License-Identifier: Apache-2.0
#include "study/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/text.hpp"
#include "report/record.hpp"

namespace echelon::inline study {
namespace {

constexpr std::size_t kNarrowest = 4, kWidest = 34;  // lines of 120 columns

// Cuts out the middle of a name, because names that share a beginning differ at their ends.
std::string cut(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  const std::size_t tail = (width - 2) / 2;
  return text.substr(0, width - 2 - tail) + ".." + text.substr(text.size() - tail);
}

// "   1,234   0.912  0.310  goal met", in the columns of `heading`.
std::string figures_text(const CellRecord& record) {
  if (record.state == CellState::finished && record.attempt.empty()) return name_of(record.state);
  if (record.state != CellState::finished && record.state != CellState::stopped)
    return fmt::format("{}: {}", name_of(record.state), record.reason);
  const RunRecord run = read_run(record.attempt);
  const auto known = [](double value) {
    return std::isfinite(value) ? fmt::format("{:.3f}", value) : std::string("-");
  };
  std::string text = fmt::format("{:>9}  {:>8}  {:>9}", rate_text(run.samples_per_s.median), known(run.test_accuracy),
                                 known(run.test_loss));
  if (record.state == CellState::stopped)
    return text + fmt::format("  {}", counted(record.rungs.back().epochs, "epoch"));
  if (record.reason.starts_with("goal")) text += record.exit_code == kExitOk ? "  goal met" : "  missed";
  return text;
}

std::size_t count_over(const std::vector<CellRecord>& records) {
  return static_cast<std::size_t>(
      std::count_if(records.begin(), records.end(), [](const CellRecord& record) { return record.over(); }));
}

}  // namespace

std::size_t StudyProgress::total() const {
  return study_.search ? static_cast<std::size_t>(study_.trials) : cells_.size();
}

std::size_t StudyProgress::text_width() const {
  std::size_t width = kNarrowest;
  for (const StudyCell& cell : cells_) width = std::max(width, cell.title().size());
  return std::min(width, kWidest);
}

std::string StudyProgress::begin_text(const std::vector<CellRecord>& records) const {
  const std::string sizes = study_.ranks.size() > 1
                                ? fmt::format("{} to {} ranks", study_.ranks.front(), study_.ranks.back())
                                : counted(study_.ranks.front(), "rank");
  std::string text = fmt::format("study     {}: {}, {}, {} in {}", study_.name,
                                 counted(static_cast<std::int64_t>(total()), study_.search ? "trial" : "cell"), sizes,
                                 study_.until_decided ? fmt::format("up to {}", counted(study_.repeats, "round"))
                                                      : counted(study_.repeats, "round"),
                                 study_.folder);
  if (const std::size_t over = count_over(records); over > 0) text += fmt::format("; {} done before", over);
  return text;
}

std::string StudyProgress::heading() const {
  return fmt::format("{:>9}  {:>5}  {:<{}}  {:>5}  {:>8}  samples/s  accuracy  test loss", "cell", "ranks", "what",
                     text_width(), "round", "took");
}

std::string StudyProgress::line_text(const StudyCell& cell, const CellRecord& record,
                                     const std::vector<CellRecord>& all) const {
  const double left_s = seconds_left(all);
  return fmt::format("{:>4}/{:<4}  {:>5}  {:<{}}  {:>5}  {:>8}  {}{}", count_over(all), total(), cell.ranks,
                     cut(cell.title(), text_width()), text_width(), cell.repeat,
                     record.seconds > 0 ? seconds_text(record.seconds) : "", figures_text(record),
                     left_s > 0 ? fmt::format("  ({} left)", seconds_text(left_s)) : "");
}

double StudyProgress::seconds_left(const std::vector<CellRecord>& records) const {
  double all_s = 0, all = 0, left_s = 0;
  if (study_.halving) return std::nan("");
  const auto mean_of = [&](int ranks) {
    double sum_s = 0, count = 0;
    for (std::size_t i = 0; i < cells_.size(); ++i)
      if (records[i].seconds > 0 && (ranks == 0 || cells_[i].ranks == ranks)) sum_s += records[i].seconds, ++count;
    return count > 0 ? sum_s / count : std::nan("");
  };
  for (const CellRecord& record : records)
    if (record.seconds > 0) all_s += record.seconds, ++all;
  if (all == 0) return std::nan("");
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (records[i].over()) continue;
    const double of_size = mean_of(cells_[i].ranks);
    left_s += std::isnan(of_size) ? all_s / all : of_size;
  }
  return left_s + static_cast<double>(total() - cells_.size()) * all_s / all;
}

}  // namespace echelon::inline study
