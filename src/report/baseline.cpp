// SPDX-License-Identifier: Apache-2.0
#include "report/baseline.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace echelon::inline report {
namespace {

using Candidates = std::vector<const Setting*>;

// Strategies of one replica do the same work. Rates this close differ by chance, so the plainest setting is taken.
constexpr double kAlike = 0.01;

double share(int count, const Setting& s) { return static_cast<double>(count) / std::max(1, s.tried()); }

// Keeps the candidates for which `value` is greatest.
template <class Value>
Candidates greatest(const Candidates& from, const Value& value) {
  double most = -std::numeric_limits<double>::infinity();
  for (const Setting* s : from) most = std::fmax(most, value(*s));
  Candidates kept;
  for (const Setting* s : from)
    if (value(*s) == most) kept.push_back(s);
  return kept.empty() ? from : kept;
}

Measure final_metric(const Evidence& evidence) {
  return {.name = goal_metric_name(shown_metric(evidence)),
          .ratio = false,
          .more_is_better = goal_rises(shown_metric(evidence)),
          .tested = Tested::figure,
          .value = [&evidence](const Setting&, const Repetition& r) { return evidence.final_figure(r); }};
}

// Negated median time to the goal. Repetitions that did not reach it count as infinitely late.
double soonest(const Setting& s) {
  std::vector<double> seconds;
  for (const Repetition& r : s.repetitions)
    seconds.push_back(r.reached() ? r.seconds_to_target : std::numeric_limits<double>::infinity());
  return -median(seconds);
}

// Keeps the candidates that learn as well as the best one.
Candidates that_learn(const Evidence& evidence, const Candidates& from) {
  const Measure metric = final_metric(evidence);
  const Setting* best = nullptr;
  for (const Setting* s : from) {
    const double value = typical(metric, *s);
    if (std::isfinite(value) && (best == nullptr || value > typical(metric, *best))) best = s;
  }
  if (best == nullptr) return from;
  const double margin = margin_of(evidence, *best, metric).value;
  Candidates kept;
  for (const Setting* s : from) {
    const Contest contest(metric, *s, *best);
    const double worse = contest.pairs() > 0 ? contest.mean() : typical(metric, *s) - typical(metric, *best);
    if (s == best || worse >= -margin) kept.push_back(s);
  }
  return kept;
}

}  // namespace

Margin margin_of(const Evidence& evidence, const Setting& base, const Measure& metric) {
  std::vector<double> known;
  for (const Repetition& r : base.repetitions)
    if (const double value = oriented(metric, base, r); std::isfinite(value)) known.push_back(value);
  if (known.empty()) return {};
  const PairedMean figures = paired_mean(known);
  const double part = evidence.rules.margin * std::fabs(figures.mean);
  if (known.size() < 2 || figures.sd <= part) return {.value = part};
  return {figures.sd, true, figures.sd / std::sqrt(2.0 * (figures.n - 1))};
}

int choose_baseline(const Evidence& evidence, const std::string& environment) {
  Candidates all;
  int fewest = std::numeric_limits<int>::max();
  for (const Setting& s : evidence.settings) {
    if (s.environment != environment || s.finished() == 0) continue;
    fewest = std::min(fewest, s.ranks());
    all.push_back(&s);
  }
  std::erase_if(all, [&](const Setting* s) { return s->ranks() > fewest; });
  if (all.empty()) return -1;
  const bool reached = std::any_of(all.begin(), all.end(), [](const Setting* s) { return s->reached > 0; });
  if (reached) {
    all = greatest(all, [](const Setting& s) { return share(s.reached, s); });
    all = greatest(all, soonest);
  } else {
    all = greatest(all, [](const Setting& s) { return -share(s.diverged + s.failed, s); });
    all = that_learn(evidence, all);
  }
  const double fastest = greatest(all, [](const Setting& s) { return s.row.rate.median; }).front()->row.rate.median;
  std::erase_if(all, [&](const Setting* s) { return s->row.rate.median < (1 - kAlike) * fastest; });
  all = greatest(all, [](const Setting& s) { return -s.parts_beyond_plain(); });
  all = greatest(all, [](const Setting& s) { return s.row.rate.median; });
  return static_cast<int>(all.front() - evidence.settings.data());
}

}  // namespace echelon::inline report
