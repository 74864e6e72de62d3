// SPDX-License-Identifier: Apache-2.0
#include "train/rate_record.hpp"

#include <algorithm>
#include <limits>

namespace echelon::inline train {

void RateRecord::add(const StepRecord& record) {
  const StepTimes& t = record.times;
  if (record.trained) steps_.push_back(entries_.size());
  entries_.push_back({.begin_s = now_s_,
                      .end_s = now_s_ + t.training_s(),
                      .samples = record.entered_samples,
                      .tokens = record.entered_tokens,
                      .evaluation_s = t.evaluation_s,
                      .checkpoint_s = t.checkpoint_s});
  now_s_ += t.total_s;
}

double RateRecord::warm_s(std::int64_t steps) const {
  const auto done = static_cast<std::int64_t>(steps_.size());
  if (done < 2) return std::numeric_limits<double>::infinity();
  return entries_[steps_[static_cast<std::size_t>(done > steps ? std::max<std::int64_t>(1, steps) - 1 : 0)]].end_s;
}

double RateRecord::last_s() const { return steps_.empty() ? 0 : entries_[steps_.back()].end_s; }

RateRecord::Share RateRecord::between(double from_s, double to_s) const {
  Share sum;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const double inside_s = std::min(entry.end_s, to_s) - std::max(entry.begin_s, from_s);
    if (inside_s > 0) {
      const double share = std::min(1.0, inside_s / (entry.end_s - entry.begin_s));
      sum.samples += share * entry.samples;
      sum.tokens += share * entry.tokens;
    }
    if (i + 1 == entries_.size() || entry.end_s < from_s || entry.end_s >= to_s) continue;
    sum.evaluation_s += entry.evaluation_s;
    sum.checkpoint_s += entry.checkpoint_s;
  }
  return sum;
}

}  // namespace echelon::inline train
