// SPDX-License-Identifier: Apache-2.0
#include "report/judge.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "report/statistics/power.hpp"

namespace echelon::inline report {
namespace {

// A standard deviation of few seeds is more often too small than too large. So its error counts half as much again
// before a setting is called worse. Otherwise 6.4 % of settings at the margin were called worse in 20 repetitions.
constexpr double kSkew = 1.5;

double share(int count, const Setting& s) { return static_cast<double>(count) / std::max(1, s.tried()); }

// Scales the p of one test to an error of the whole study, with the looks shared out.
double over_looks(double p, Tested tested) { return std::fmin(1, p / look_level(tested) * kStudyError); }

bool at_look(double p, Tested tested) { return p <= look_level(tested); }

Rival rival_of(const Field& field, const Setting& s) {
  Rival out{.setting = &s, .speed = Contest(field.speed, s, *field.base)};
  const double gain = field.log_gain();
  out.diverges = share(s.diverged, s) > share(field.base->diverged, *field.base);
  out.misses_goal = field.by_time && !s.to_target();
  const bool as_often = share(s.reached, s) >= share(field.base->reached, *field.base) && !field.base->to_target();
  if (!field.by_time && field.has_metric) out.quality.emplace(field.metric, s, *field.base);
  out.faster = at_look(out.speed.better(gain), Tested::timing);
  out.slower = at_look(out.speed.worse(gain), Tested::timing);
  out.not_worse =
      !out.diverges && !out.misses_goal &&
      (!out.quality || at_look(out.quality->better(-field.margin.value, field.margin.error), Tested::figure));
  out.worse =
      out.diverges || (out.misses_goal && !as_often) ||
      (out.quality && at_look(out.quality->worse(-field.margin.value, kSkew * field.margin.error), Tested::figure));
  return out;
}

}  // namespace

bool keeps_limits(const Field& field, const Setting& s) {
  const GoalConfig& goal = field.evidence.goal;
  const double wall_s = s.wall_s(field.by_time);
  if (goal.most_samples > 0 && field.by_time && !(s.samples.median <= goal.most_samples * field.base->samples.median))
    return false;
  if (goal.least_efficiency > 0 && !(s.row.efficiency >= goal.least_efficiency)) return false;
  if (goal.greatest_cost > 0 && !(field.evidence.price(s, wall_s) <= goal.greatest_cost)) return false;
  return !(goal.deadline_h > 0) || wall_s <= 3600 * goal.deadline_h;
}

Judge::Judge(const Field& field) : field_(field) {
  for (const Setting* s : field.members)
    if (s->ranks() > field.base->ranks()) rivals_.push_back(rival_of(field, *s));
  std::vector<double> errors;
  for (const Rival& s : rivals_) {
    double error = over_looks(s.speed.better(field.log_gain()), Tested::timing);
    if (s.quality)
      error = std::fmax(error, over_looks(s.quality->better(-field.margin.value, field.margin.error), Tested::figure));
    errors.push_back(s.diverges || s.misses_goal ? 1 : error);
  }
  judged_ = holm(errors, kStudyError);
  for (std::size_t i = 0; i < rivals_.size(); ++i) rivals_[i].winner = judged_[i].shown;
}

Answer Judge::answer() const {
  if (field_.base->ranks() != 1 || rivals_.empty()) return Answer::undecided;
  const auto any = [&](auto is) { return std::any_of(rivals_.begin(), rivals_.end(), is); };
  if (any([](const Rival& s) { return s.winner; })) return Answer::yes;
  const bool left = any([](const Rival& s) { return s.compared() && !s.slower && !s.worse; });
  return left || !any([](const Rival& s) { return s.compared(); }) || (pairs() < kLeastTimings) ? Answer::undecided
                                                                                                : Answer::no;
}

int Judge::pairs() const {
  int least = std::numeric_limits<int>::max();
  for (const Rival& s : rivals_)
    if (s.compared()) least = std::min(least, std::max(s.speed.pairs(), s.diverges ? s.setting->tried() : 0));
  return rivals_.empty() || least == std::numeric_limits<int>::max() ? 0 : least;
}

const Setting& Judge::cheapest_simplest(std::vector<const Setting*> tied) const {
  double cheapest = -std::numeric_limits<double>::infinity();
  for (const Setting* s : tied) cheapest = std::fmax(cheapest, typical(field_.cost, *s));
  if (std::isfinite(cheapest))
    std::erase_if(tied, [&](const Setting* s) { return !(typical(field_.cost, *s) >= cheapest - field_.log_gain()); });
  return **std::min_element(tied.begin(), tied.end(), [&](const Setting* a, const Setting* b) {
    return std::tuple(a->ranks(), a->parts_beyond_plain(), -typical(field_.cost, *a)) <
           std::tuple(b->ranks(), b->parts_beyond_plain(), -typical(field_.cost, *b));
  });
}

std::optional<Champion> Judge::champion(const Measure& measure, const std::vector<const Setting*>& candidates,
                                        double threshold) const {
  std::vector<const Setting*> known;
  for (const Setting* s : candidates)
    if (std::isfinite(typical(measure, *s)) && s->finished() >= least_repetitions(measure.tested)) known.push_back(s);
  if (known.empty()) return {};
  Champion out;
  for (const Setting* s : known)
    if (out.best == nullptr || typical(measure, *s) > typical(measure, *out.best)) out.best = s;
  std::vector<double> errors;
  for (const Setting* s : known)
    if (s != out.best)
      errors.push_back(
          over_looks(Contest(measure, *out.best, *s).better(as_compared(measure, threshold)), measure.tested));
  const std::vector<Judged> beaten = holm(errors, kStudyError);
  std::vector<const Setting*> tied = {out.best};
  std::size_t i = 0;
  for (const Setting* s : known)
    if (s != out.best && !beaten[i++].shown) tied.push_back(s);
  out.chosen = &cheapest_simplest(tied);
  for (const Setting* s : tied)
    if (s != out.chosen) out.ties.push_back(s);
  return out;
}

std::optional<Champion> Judge::recommended() const {
  if (answer() != Answer::yes) return {};
  std::vector<const Setting*> winners, within;
  for (const Rival& s : rivals_) {
    if (!s.winner) continue;
    winners.push_back(s.setting);
    if (keeps_limits(field_, *s.setting)) within.push_back(s.setting);
  }
  return champion(field_.speed, within.empty() ? winners : within, field_.gain());
}

std::vector<const Setting*> Judge::of_equal_quality() const {
  std::vector<const Setting*> all = {field_.base};
  for (const Setting* s : field_.members) {
    if (s == field_.base || s->ranks() > field_.base->ranks()) continue;
    const Rival other = rival_of(field_, *s);
    if (other.not_worse) all.push_back(s);
  }
  for (const Rival& s : rivals_)
    if (s.not_worse) all.push_back(s.setting);
  if (field_.by_time) std::erase_if(all, [](const Setting* s) { return !s->to_target(); });
  return all;
}

bool Judge::as_fast_as_one(const Rival& s) const {
  return at_look(s.speed.worse(field_.log_gain()), Tested::timing) &&
         at_look(s.speed.better(-field_.log_gain()), Tested::timing);
}

// The repetitions with which one setting would be shown to win (or to lose) at the level that all settings share.
int Judge::needed_for(const Rival& s, bool to_win) const {
  const double share = to_win ? static_cast<double>(rivals_.size()) : 1;
  const auto pairs_for = [&](const Contest& contest, double threshold, Tested tested, bool above) {
    const double of_threshold = tested == Tested::figure ? field_.margin.error : 0;
    const double sd = std::hypot(contest.sd(), of_threshold * std::sqrt(1.0 * contest.pairs())),
                 effect = above ? contest.mean() - threshold : threshold - contest.mean();
    return std::isnan(sd) ? kMostPairs + 1
                          : pairs_to_find(effect, sd, look_level(tested) / share, least_repetitions(tested));
  };
  const int speed = pairs_for(s.speed, field_.log_gain(), Tested::timing, to_win);
  if (!s.quality) return speed;
  const int quality = pairs_for(*s.quality, -field_.margin.value, Tested::figure, to_win);
  return to_win ? std::max(speed, quality) : std::min(speed, quality);
}

int Judge::needed() const {
  if (answer() != Answer::undecided || rivals_.empty() || field_.base->ranks() != 1) return 0;
  int to_win = kMostPairs + 1, to_lose = 0;
  bool figures = false;
  for (const Rival& s : rivals_) {
    if (!s.compared() || s.worse) continue;
    figures = figures || s.quality.has_value();
    to_win = std::min(to_win, needed_for(s, true));
    if (!s.slower) to_lose = std::max(to_lose, needed_for(s, false));
  }
  const int least = figures ? kLeastFigures : kLeastTimings, needed = std::min(to_win, to_lose > 0 ? to_lose : to_win);
  if (pairs() < 2) return least - pairs();
  return needed > kMostPairs ? 0 : std::max(1, std::max(least, needed) - pairs());
}

std::vector<TestRecord> Judge::tests() const {
  std::vector<TestRecord> out;
  const auto add = [&](const Rival& s, const Contest& contest, const Measure& measure, const char* question,
                       double threshold, double p, double level) {
    const double compared = as_compared(measure, threshold);
    TestRecord test{.environment = field_.environment,
                    .question = question,
                    .measure = measure.name,
                    .setting = field_.index(*s.setting),
                    .against = field_.index(*field_.base),
                    .method = contest.method(),
                    .pairs = contest.pairs(),
                    .threshold = threshold,
                    .effect = contest.effect(),
                    .p = p,
                    .level = level,
                    .shown = p <= level};
    const std::string asked = question;
    if (measure.tested == Tested::figure) test.threshold_error = (asked == "worse" ? kSkew : 1) * field_.margin.error;
    if (asked == "faster" || asked == "not worse") test.flips_p = contest.flips(compared);
    out.push_back(std::move(test));
  };
  for (std::size_t i = 0; i < rivals_.size(); ++i) {
    const Rival& s = rivals_[i];
    const double gain = field_.log_gain(), part = judged_[i].level / kStudyError;
    if (!s.speed.enough()) continue;
    add(s, s.speed, field_.speed, "faster", field_.gain(), s.speed.better(gain), look_level(Tested::timing) * part);
    add(s, s.speed, field_.speed, "no gain", field_.gain(), s.speed.worse(gain), look_level(Tested::timing));
    if (!s.quality || !s.quality->enough()) continue;
    const double margin = -field_.margin.value;
    add(s, *s.quality, field_.metric, "not worse", margin, s.quality->better(margin, field_.margin.error),
        look_level(Tested::figure) * part);
    add(s, *s.quality, field_.metric, "worse", margin, s.quality->worse(margin, kSkew * field_.margin.error),
        look_level(Tested::figure));
  }
  return out;
}

}  // namespace echelon::inline report
