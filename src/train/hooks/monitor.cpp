// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/monitor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "device/throttling.hpp"

namespace echelon::inline train {
namespace {

constexpr double kLeastDifference_s = 2e-3;  // below it a rank is not called slow: noise of short steps
constexpr std::int64_t kFirstTold = 8;       // number of told steps from which growth of memory is counted
constexpr std::size_t kMostKept = 64;        // of memory by rank
constexpr double kLeastLateShare = 0.25;     // of growth, in the second half of the time
constexpr std::int64_t kStepsBeforeForecast = 50;

// The lower one of two.
double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

MonitorHook::MonitorHook(MonitorSetting setting, const Clock& clock)
    : setting_(std::move(setting)), clock_(clock), ranks_(setting_.hosts.size()) {}

std::string MonitorHook::named(std::size_t rank) const {
  return fmt::format("rank {} on {}", rank, setting_.hosts[rank]);
}

void MonitorHook::tell(Watch watch, const std::string& text) {
  if (setting_.reports && setting_.warn) setting_.warn(text);
  if (watch != Watch::stop || !why_.empty()) return;
  why_ = text;
  requeue_ = true;
}

void MonitorHook::run_begin(std::int64_t first_step) {
  first_step_ = first_step;
  start_s_ = clock_.now_s();
}

void MonitorHook::take(std::int64_t step, double loss) {
  if (keys().plateau == Watch::off || plateau_ || !std::isfinite(loss) || step == evaluated_at_) return;
  evaluated_at_ = step;
  if (loss < best_ - keys().plateau_change * std::fabs(best_) || std::isinf(best_)) {
    best_ = loss;
    without_ = 0;
    return;
  }
  if (++without_ < keys().plateau_evaluations) return;
  const std::string text = fmt::format(
      "{} {}: the loss is {:.5g}, and {} in a row did not improve on the best, {:.5g}, by {:g} of it (monitor.plateau)",
      kPlateau, step, loss, counted(without_, "evaluation"), best_, keys().plateau_change);
  plateau_ = keys().plateau == Watch::stop;
  without_ = 0;  // a warning is repeated after as many again
  if (setting_.reports && setting_.warn) setting_.warn(text);
  if (plateau_) why_ = text;
}

void MonitorHook::epoch_end(EpochRecord& record) {
  if (record.tested() || setting_.config.data.test.empty() || setting_.config.evaluate.by == EvaluateBy::aside)
    take(record.step, record.tested() ? record.test_loss : record.train_loss);
  if (ends_run()) record.last = true;
}

void MonitorHook::step_end(const StepRecord& record) {
  if (!setting_.reports) return;
  watch_end(record.step);
  if (record.ranks.size() != ranks_.size()) return;
  ++told_steps_;
  watch_times(record);
  watch_memory(record);
  watch_clocks(record);
}

void MonitorHook::watch_times(const StepRecord& record) {
  if (keys().slow_rank == Watch::off) return;
  const auto window = static_cast<std::size_t>(keys().slow_steps);
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r].compute_s.push_back(record.ranks[r].compute_s);
    if (ranks_[r].compute_s.size() > window) ranks_[r].compute_s.pop_front();
  }
  if (told_steps_ % keys().slow_steps == 0) judge_times(record.step);
}

void MonitorHook::judge_times(std::int64_t step) {
  std::vector<double> medians;
  std::map<int, std::vector<double>> by_part;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    medians.push_back(lower_median({ranks_[r].compute_s.begin(), ranks_[r].compute_s.end()}));
    by_part[setting_.parts[r]].push_back(medians.back());
  }
  const bool alike = setting_.config.batch.shares.empty();
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    const std::vector<double>& peers = by_part[setting_.parts[r]];
    const double others_s = alike && peers.size() > 1 ? lower_median(peers) : medians[r], past_s = rank.least_s;
    rank.least_s = std::min(rank.least_s, medians[r]);
    const auto is_slow = [&](double than_s) {
      return medians[r] > keys().slow_factor * than_s && medians[r] - than_s > kLeastDifference_s;
    };
    const bool slower_than_others = is_slow(others_s), slow = slower_than_others || is_slow(past_s);
    if (slow && !rank.slow)
      tell(keys().slow_rank,
           fmt::format("{} is slow at step {}: it computes {} per step, {} {} (median of {}; monitor.slow_rank)",
                       named(r), step, seconds_text(medians[r]),
                       slower_than_others ? "the median rank" : "before it took",
                       seconds_text(slower_than_others ? others_s : past_s), counted(keys().slow_steps, "step")));
    rank.slow = slow;
  }
}

void MonitorHook::watch_memory(const StepRecord& record) {
  if (keys().memory == Watch::off || told_steps_ % rss_every_ != 0) return;
  bool full = false;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    const double now_mb = record.ranks[r].rss_mb;
    if (told_steps_ <= kFirstTold) {
      rank.from_mb = now_mb;
      continue;
    }
    rank.rss_mb.push_back(now_mb);
    full = full || rank.rss_mb.size() >= kMostKept;
    const double growth_mb = now_mb - rank.from_mb, late_mb = now_mb - rank.rss_mb[rank.rss_mb.size() / 2];
    if (growth_mb < keys().memory_growth_mb || late_mb < kLeastLateShare * growth_mb) continue;
    tell(keys().memory, fmt::format("{}: memory grows: {:.0f} MiB at step {}, {:.0f} MiB before (monitor.memory)",
                                    named(r), now_mb, record.step, rank.from_mb));
    rank.from_mb = now_mb;
    rank.rss_mb.clear();
  }
  if (full) thin_out();
}

void MonitorHook::watch_clocks(const StepRecord& record) {
  if (keys().throttling == Watch::off) return;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const auto reasons = static_cast<unsigned>(record.ranks[r].throttled);
    if (reasons != 0 && !ranks_[r].throttled)
      tell(keys().throttling, fmt::format("{}: the GPU is throttled at step {} by {} (monitor.throttling)", named(r),
                                          record.step, throttling_text(reasons)));
    ranks_[r].throttled = reasons != 0;
  }
}

// Keeps one in several told steps, so that a rank keeps few over any time.
void MonitorHook::thin_out() {
  rss_every_ *= 2;
  for (Rank& rank : ranks_) {
    std::vector<double> kept;
    for (std::size_t i = 1; i < rank.rss_mb.size(); i += 2) kept.push_back(rank.rss_mb[i]);
    rank.rss_mb = std::move(kept);
  }
}

void MonitorHook::watch_end(std::int64_t step) {
  if (keys().out_of_time == Watch::off || told_end_ || !setting_.left_s) return;
  const std::int64_t done = step - first_step_;
  if (done == 0 || done % kStepsBeforeForecast != 0) return;
  const double left_s = setting_.left_s();
  const double needed_s =
      (clock_.now_s() - start_s_) / static_cast<double>(done) * static_cast<double>(setting_.total_steps - step);
  if (needed_s <= left_s) return;
  told_end_ = true;
  tell(Watch::warn, fmt::format("out of time: {} of {} need {} more, but the job ends in {} (monitor.out_of_time); the "
                                "run will save a checkpoint and exit with 75",
                                count_text(setting_.total_steps - step), counted(setting_.total_steps, "step"),
                                seconds_text(needed_s), seconds_text(left_s)));
}

}  // namespace echelon::inline train
