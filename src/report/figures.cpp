// SPDX-License-Identifier: Apache-2.0
#include "report/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.hpp"
#include "report/figures_list.hpp"

namespace echelon::inline report {
namespace {

using figures::Is;

// Combines the values at `index` of all ranks.
double over_ranks(OverRanks how, const std::vector<double>& all, std::size_t ranks, std::size_t index, int workers) {
  const std::size_t stride = all.size() / ranks;
  double sum = 0, most = kUnknown, mean = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const double value = all[rank * stride + index];
    sum += value;
    most = std::fmax(most, value);
    if (rank < static_cast<std::size_t>(workers)) mean += value / workers;
  }
  switch (how) {
    case OverRanks::sum: return sum;
    case OverRanks::mean: return mean;
    case OverRanks::largest: return most;
    default: return all[index];
  }
}

const char* text_of(OverRanks how) {
  constexpr std::array texts = {"equal", "sum", "mean", "largest", "list", "rank 0"};
  return texts[static_cast<std::size_t>(how)];
}
const char* text_of(OverSteps how) {
  constexpr std::array texts = {"-", "sum", "mean", "quartiles", "newest"};
  return texts[static_cast<std::size_t>(how)];
}
const char* text_of(OverRuns how) {
  constexpr std::array texts = {"first", "median", "largest", "sum"};
  return texts[static_cast<std::size_t>(how)];
}

template <class Figures>
void add_table(std::string& out, const std::string& heading) {
  Table table({"figure", "unit", "over ranks", "over steps", "over repetitions", "meaning"});
  Figures none;
  each(none, [&](const Figure& figure, auto&) {
    table.row({fmt::format("`{}`", figure.name), *figure.unit ? figure.unit : "-", text_of(figure.ranks),
               text_of(figure.steps), text_of(figure.runs), *figure.meaning ? figure.meaning : "-"});
  });
  out += fmt::format("{}{}\n\n{}", out.empty() ? "" : "\n", heading, table.markdown());
}

}  // namespace

Quartiles quartiles_of(std::vector<double> values) {
  if (values.empty()) return {0, 0, 0};
  std::sort(values.begin(), values.end());
  const auto quantile = [&](double q) {
    const double position = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
  };
  return {quantile(0.5), quantile(0.25), quantile(0.75)};
}

double largest(const std::vector<double>& values) {
  double most = kUnknown;
  for (const double value : values) most = std::fmax(most, value);
  return most;
}

double median(std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  return values.empty() ? kUnknown : quartiles_of(std::move(values)).median;
}

double StepTimes::other_s() const {
  double left = total_s;
  for (const TimePart& part : kClaimedTimes) left -= this->*part.seconds;
  return std::max(0.0, left);
}

const char* time_part_name(std::size_t part) {
  return part < kClaimedTimes.size() ? kClaimedTimes[part].name : "other";
}

bool is_seldom(std::size_t part) {
  if (part >= kClaimedTimes.size()) return false;
  const auto seconds = kClaimedTimes[part].seconds;
  return seconds == &StepTimes::split_s || seconds == &StepTimes::evaluation_s || seconds == &StepTimes::checkpoint_s;
}

StepTimes& operator+=(StepTimes& sum, const StepTimes& more) {
  sum.total_s += more.total_s;
  for (const TimePart& part : kClaimedTimes) sum.*part.seconds += more.*part.seconds;
  return sum;
}

std::vector<double> percent_parts(const std::vector<double>& parts) {
  const double whole = std::accumulate(parts.begin(), parts.end(), 0.0);
  std::vector<double> out(parts.size(), 0.0);
  if (!(whole > 0)) return out;
  std::vector<int> tenths;
  std::vector<std::size_t> order;
  int left = 1000;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    tenths.push_back(static_cast<int>(parts[i] / whole * 1000));
    left -= tenths.back();
    order.push_back(i);
  }
  const auto remainder = [&](std::size_t i) { return parts[i] / whole * 1000 - tenths[i]; };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return remainder(a) > remainder(b); });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool gets_one = left > 0;
    if (gets_one) --left;
    out[order[i]] = (tenths[order[i]] + (gets_one ? 1 : 0)) / 10.0;
  }
  return out;
}

TimePercent time_percent(const StepTimes& times) {
  std::vector<double> seconds;
  for (const TimePart& part : kClaimedTimes) seconds.push_back(times.*part.seconds);
  seconds.push_back(times.other_s());
  TimePercent percent{};
  std::ranges::copy(percent_parts(seconds), percent.begin());
  return percent;
}

std::vector<double> values_of_rank(const RunFigures& own) {
  std::vector<double> values;
  each(own, [&]<class T>(const Figure& figure, T& value) {
    if (figure.ranks == OverRanks::same || figure.ranks == OverRanks::rank0) return;
    if constexpr (Is<T, double>) values.push_back(value);
    if constexpr (Is<T, std::vector<double>>) values.push_back(value.at(0));
    if constexpr (Is<T, StepTimes>) {
      values.push_back(value.total_s);
      for (const TimePart& part : kClaimedTimes) values.push_back(value.*part.seconds);
    }
  });
  return values;
}

void combine_ranks(RunFigures& run, const std::vector<double>& by_rank, int workers) {
  const std::size_t ranks = by_rank.size() / values_of_rank(run).size();
  std::size_t index = 0;
  each(run, [&]<class T>(const Figure& figure, T& value) {
    if (figure.ranks == OverRanks::same || figure.ranks == OverRanks::rank0) return;
    const auto next = [&] { return over_ranks(figure.ranks, by_rank, ranks, index++, workers); };
    if constexpr (Is<T, double>) value = next();
    if constexpr (Is<T, std::vector<double>>) {
      value.clear();
      for (std::size_t rank = 0; rank < ranks; ++rank) value.push_back(by_rank[rank * by_rank.size() / ranks + index]);
      ++index;
    }
    if constexpr (Is<T, StepTimes>) {
      value.total_s = next();
      for (const TimePart& part : kClaimedTimes) value.*part.seconds = next();
    }
  });
}

namespace {

double combined(OverRuns how, const std::vector<double>& values) {
  if (how == OverRuns::median) return median(values);
  if (how == OverRuns::largest) return largest(values);
  if (how == OverRuns::sum) return std::accumulate(values.begin(), values.end(), 0.0);
  return values.front();
}

}  // namespace

RunFigures combine_runs(const std::vector<const RunFigures*>& runs) {
  RunFigures out = *runs.front();
  if (runs.size() == 1) return out;
  // [run][member], members in the order of the list
  std::vector<std::vector<double>> numbers;
  std::vector<StepTimes> times;
  for (const RunFigures* run : runs) {
    std::size_t at = 0;
    const auto add = [&](double value) {
      if (at == numbers.size()) numbers.emplace_back();
      numbers[at++].push_back(value);
    };
    each(*run, [&]<class T>(const Figure&, T& value) {
      if constexpr (Is<T, double>) add(value);
      if constexpr (Is<T, Quartiles>) add(value.median);
      if constexpr (Is<T, std::vector<double>>) add(largest(value));
    });
    times.push_back(run->time_split_s);
  }
  std::size_t at = 0;
  each(out, [&]<class T>(const Figure& figure, T& value) {
    if constexpr (Is<T, double>) value = combined(figure.runs, numbers[at++]);
    if constexpr (Is<T, Quartiles>) value = {combined(figure.runs, numbers[at++]), kUnknown, kUnknown};
    if constexpr (Is<T, std::vector<double>>) value = {combined(figure.runs, numbers[at++])};
    if constexpr (Is<T, StepTimes>)
      value = std::accumulate(times.begin() + 1, times.end(), times.front(),
                              [](StepTimes sum, const StepTimes& more) { return sum += more; });
  });
  return out;
}

std::string figures_markdown() {
  std::string out;
  add_table<StepFigures>(out, "A step: a row of `metrics.jsonl` with `\"type\":\"step\"`");
  add_table<EpochFigures>(out, "An epoch: a row of `metrics.jsonl` with `\"type\":\"epoch\"`");
  add_table<CheckpointFigures>(out, "A checkpoint: a row of `metrics.jsonl` with `\"type\":\"checkpoint\"`");
  add_table<RunFigures>(out, "An attempt: `summary.json`");
  return out;
}

}  // namespace echelon::inline report
