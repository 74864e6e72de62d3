// SPDX-License-Identifier: Apache-2.0
#include "report/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>

#include "base/text.hpp"
#include "report/verdict_words.hpp"

namespace echelon::inline report {
namespace {

struct Limit {
  std::function<bool(const Setting&)> kept;
  std::function<std::string(const Setting&)> text;
};

std::vector<Limit> limits_of_goal(const Field& field) {
  const Evidence& e = field.evidence;
  const GoalConfig& g = e.goal;
  std::vector<Limit> all;
  if (e.has_goal())
    all.push_back({[](const Setting& s) { return s.to_target(); },
                   [g](const Setting& s) {
                     return fmt::format("{} {} {}", goal_metric_name(g.metric), g.target, s.outcome_text(true));
                   }});
  if (g.most_samples > 0) {
    const double base = field.base->samples.median;
    all.push_back({[=](const Setting& s) { return s.samples.median <= g.most_samples * base; },
                   [=](const Setting& s) {
                     const double times = s.samples.median / base;
                     if (std::isnan(times))
                       return fmt::format("samples to the target unknown (limit: {}x those of the single worker)",
                                          g.most_samples);
                     return fmt::format("{:.2f}x the samples of the single worker (limit: {})", times, g.most_samples);
                   }});
  }
  if (g.least_efficiency > 0)
    all.push_back({[=](const Setting& s) { return s.row.efficiency >= g.least_efficiency; },
                   [=](const Setting& s) {
                     return fmt::format("efficiency {:.0f} % (at least {:.0f} % required)", 100 * s.row.efficiency,
                                        100 * g.least_efficiency);
                   }});
  if (g.greatest_cost > 0)
    all.push_back({[&e, g](const Setting& s) { return e.price(s) <= g.greatest_cost; },
                   [&e, g](const Setting& s) {
                     const std::string limit = fmt::format("(limit: {} {})", g.greatest_cost, e.cost.currency);
                     if (std::isnan(e.price(s))) return "cost to the target unknown " + limit;
                     return fmt::format("{:.3g} {} {}", e.price(s), e.cost.currency, limit);
                   }});
  if (g.deadline_h > 0)
    all.push_back({[&e, g](const Setting& s) { return s.wall_s(e.has_goal()) <= 3600 * g.deadline_h; },
                   [&e, g](const Setting& s) {
                     const double wall_s = s.wall_s(e.has_goal());
                     return fmt::format("{} (limit: {})",
                                        std::isnan(wall_s) ? "time to the target unknown" : seconds_text(wall_s),
                                        seconds_text(3600 * g.deadline_h));
                   }});
  return all;
}

// One setting must keep all limits: the recommended one, else one worker, else the fastest that keeps them.
void goals(const Field& field, const EnvironmentVerdict& answer, StudyVerdict& verdict) {
  const std::vector<Limit> limits = limits_of_goal(field);
  if (limits.empty()) return;
  const auto keeps_all = [&](const Setting& s) {
    return std::all_of(limits.begin(), limits.end(), [&](const Limit& limit) { return limit.kept(s); });
  };
  const Setting* judged = answer.recommended >= 0 ? &field.at(answer.recommended) : field.base;
  if (!keeps_all(*judged)) {
    const Setting* found = nullptr;
    for (const Setting* s : field.members)
      if (s->finished() > 0 && keeps_all(*s) &&
          (found == nullptr || typical(field.speed, *s) > typical(field.speed, *found)))
        found = s;
    if (found != nullptr) judged = found;
  }
  const std::string where = field.environment.empty() ? "" : field.environment + ": ";
  for (const Limit& limit : limits)
    verdict.goals.push_back({limit.kept(*judged), fmt::format("{}{}: {}", where, said(*judged), limit.text(*judged))});
}

template <class T>
void append(std::vector<T>& to, std::vector<T> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// Prefixes the sentences with the environment if there are several.
std::vector<std::string> of_environment(std::vector<std::string> sentences, const std::string& environment) {
  if (!environment.empty())
    for (std::string& sentence : sentences) sentence = environment + ": " + sentence;
  return sentences;
}

void judge_environment(const Evidence& evidence, const std::string& environment, StudyVerdict& verdict) {
  const auto in = [&](const Setting& s) { return s.environment == environment; };
  const auto first = std::find_if(evidence.settings.begin(), evidence.settings.end(), in);
  if (evidence.baseline_of(*first) < 0) {
    EnvironmentVerdict none{.environment = environment, .headline = "Not decided: no repetition finished."};
    for (const Setting& s : evidence.settings)
      if (in(s)) verdict.caveats.push_back(fmt::format("{}: {}.", said(s), s.outcome_text(evidence.has_goal())));
    verdict.environments.push_back(std::move(none));
    return;
  }
  const Field field(evidence, environment);
  const Judge judge(field);
  verdict.environments.push_back(answer_of(judge));
  append(verdict.rows, goal_rows(judge));
  append(verdict.limits, of_environment(limits_of(judge), environment));
  append(verdict.caveats, of_environment(caveats_of(judge), environment));
  append(verdict.tests, judge.tests());
  goals(field, verdict.environments.back(), verdict);
}

void sum_up(StudyVerdict& verdict) {
  const auto& all = verdict.environments;
  const auto count = [&](Answer answer) {
    return std::count_if(all.begin(), all.end(), [&](const EnvironmentVerdict& e) { return e.answer == answer; });
  };
  for (const EnvironmentVerdict& e : all)
    if (verdict.recommended < 0) verdict.recommended = e.recommended;
  if (all.size() == 1) {
    verdict.answer = all.front().answer;
    verdict.headline = all.front().headline;
    return;
  }
  verdict.answer = count(Answer::undecided) > 0 ? Answer::undecided : count(Answer::yes) > 0 ? Answer::yes : Answer::no;
  for (const auto& [answer, word] :
       {std::pair{Answer::yes, "yes"}, {Answer::no, "no"}, {Answer::undecided, "not decided"}})
    if (const auto n = count(answer); n > 0)
      verdict.headline += verdict.headline.empty() ? fmt::format("{} in {} of {} environments", word, n, all.size())
                                                   : fmt::format(", {} in {}", word, n);
  verdict.headline.front() = static_cast<char>(std::toupper(verdict.headline.front()));
  verdict.headline += '.';
}

}  // namespace

std::string name_of(const Setting& setting) {
  return fmt::format("{}{}", setting.label.empty() ? "" : setting.label + " on ", counted(setting.ranks(), "rank"));
}

StudyVerdict make_verdict(const Evidence& evidence) {
  StudyVerdict verdict;
  if (evidence.environments.empty()) {
    verdict.headline = "Not decided: no run of the study finished, and nothing was measured.";
    return verdict;
  }
  for (const std::string& environment : evidence.environments) judge_environment(evidence, environment, verdict);
  sum_up(verdict);
  return verdict;
}

bool decided(const Evidence& evidence) {
  if (evidence.environments.empty()) return false;
  return std::all_of(evidence.environments.begin(), evidence.environments.end(), [&](const std::string& environment) {
    const auto first = std::find_if(evidence.settings.begin(), evidence.settings.end(),
                                    [&](const Setting& s) { return s.environment == environment; });
    if (evidence.baseline_of(*first) < 0) return false;
    const Field field(evidence, environment);
    return Judge(field).answer() != Answer::undecided;
  });
}

}  // namespace echelon::inline report
