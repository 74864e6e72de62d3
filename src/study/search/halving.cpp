// SPDX-License-Identifier: Apache-2.0
#include "study/search/halving.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace echelon::inline study {
namespace {

using What = Promotion::What;
using Members = std::vector<std::size_t>;  // trials

bool failed(const TrialRungs& trial) { return !trial.figures.empty() && !std::isfinite(trial.figures.back()); }

// Whether its figure on this rung is known, or never will be.
bool known(const TrialRungs& trial, std::size_t rung) { return trial.figures.size() > rung || failed(trial); }

// The best `count` of the trials that are known on a rung and did not fail, best first.
Members best_of(const std::vector<TrialRungs>& trials, const Members& members, std::size_t rung, std::size_t count) {
  Members good;
  for (const std::size_t t : members)
    if (trials[t].figures.size() > rung && std::isfinite(trials[t].figures[rung])) good.push_back(t);
  std::stable_sort(good.begin(), good.end(),
                   [&](std::size_t a, std::size_t b) { return trials[a].figures[rung] < trials[b].figures[rung]; });
  good.resize(std::min(good.size(), count));
  return good;
}

// The first of `members` that has not begun this rung.
std::optional<std::size_t> first_to_begin(const std::vector<TrialRungs>& trials, const Members& members,
                                          std::size_t rung) {
  for (const std::size_t t : members)
    if (!known(trials[t], rung) && !trials[t].under_way) return t;
  return {};
}

Promotion synchronous(std::size_t eta, std::size_t rungs, const std::vector<TrialRungs>& trials, std::size_t planned) {
  Members members(trials.size());
  std::iota(members.begin(), members.end(), std::size_t{0});
  for (std::size_t rung = 0; rung < rungs; ++rung) {
    if (const auto next = first_to_begin(trials, members, rung)) return {What::go_on, *next};
    if (rung == 0 && trials.size() < planned) return {What::new_trial};
    if (!std::all_of(members.begin(), members.end(), [&](std::size_t t) { return known(trials[t], rung); }))
      return {What::wait};
    members = best_of(trials, members, rung, std::max<std::size_t>(1, members.size() / eta));
  }
  return {};
}

// Tries rungs from the top down, then a trial that was stopped before the first rung, then a new one.
Promotion asynchronous(std::size_t eta, std::size_t rungs, const std::vector<TrialRungs>& trials, std::size_t planned) {
  Members all(trials.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const bool busy = std::any_of(trials.begin(), trials.end(), [](const TrialRungs& t) { return t.under_way; });
  const bool last = !busy && trials.size() >= planned;  // the best continue to the end even if there are fewer than eta
  for (std::size_t rung = rungs; rung-- > 1;) {
    const auto reached = static_cast<std::size_t>(std::count_if(
        trials.begin(), trials.end(), [&](const TrialRungs& trial) { return trial.figures.size() >= rung; }));
    const Members best = best_of(trials, all, rung - 1, reached / eta);
    if (const auto next = first_to_begin(trials, best, rung)) return {What::go_on, *next};
  }
  if (const auto next = first_to_begin(trials, all, 0)) return {What::go_on, *next};
  if (trials.size() < planned) return {What::new_trial};
  for (std::size_t rung = 1; last && rung < rungs; ++rung)
    if (const auto next = first_to_begin(trials, best_of(trials, all, rung - 1, 1), rung)) return {What::go_on, *next};
  return {busy ? What::wait : What::none};
}

}  // namespace

std::vector<std::int64_t> rungs_of(const HalvingOptions& options, std::int64_t epochs) {
  std::vector<std::int64_t> rungs;
  for (std::int64_t at = options.first_epochs; at < epochs; at *= options.eta) rungs.push_back(at);
  rungs.push_back(epochs);
  return rungs;
}

Promotion next_promotion(const HalvingOptions& options, std::size_t rungs, const std::vector<TrialRungs>& trials,
                         std::size_t planned) {
  const auto eta = static_cast<std::size_t>(options.eta);
  return options.asynchronous ? asynchronous(eta, rungs, trials, planned) : synchronous(eta, rungs, trials, planned);
}

}  // namespace echelon::inline study
