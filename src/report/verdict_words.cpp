// SPDX-License-Identifier: Apache-2.0
#include "report/verdict_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "report/verdict.hpp"

namespace echelon::inline report {
namespace {

constexpr std::size_t kNamed = 3;  // settings named from a longer list

// Inverts "times cheaper" to a cost: "at 1.03x its cost".
Effect as_cost(const Effect& cheaper) {
  return {.value = 1 / cheaper.value, .low = 1 / cheaper.high, .high = 1 / cheaper.low, .pairs = cheaper.pairs};
}

// The most promising setting: the one with the fastest mean that is not worse.
const Rival* most_promising(const Judge& judge) {
  const Rival* held = nullptr;
  const auto value = [](const Rival& s) { return s.speed.effect().value > 0 ? s.speed.effect().value : 0; };
  for (const Rival& s : judge.rivals())
    if (!s.worse && s.compared() && (held == nullptr || value(s) > value(*held))) held = &s;
  return held;
}

std::string yes_text(const Judge& judge, const EnvironmentVerdict& verdict) {
  const Field& field = judge.field();
  std::string text = fmt::format("Yes: {}. {}", said(field.at(verdict.recommended)), gain_text(field, verdict.gain));
  if (!field.by_time && field.has_metric) text += fmt::format(" at equal {}", field.metric_name());
  if (std::isfinite(verdict.cost.value)) text += fmt::format(", at {:.2f}x its cost", verdict.cost.value);
  text += ".";
  if (verdict.ties.empty()) return text;
  std::vector<const Setting*> ties;
  for (const int tie : verdict.ties) ties.push_back(&field.at(tie));
  return text + fmt::format(
                    " Tied with {}, because it is not shown to be more than {} faster: of tied settings, the one named "
                    "costs least or, at equal cost, has the fewest ranks or the simplest method.",
                    said(ties), times_text(field.gain()));
}

std::string no_text(const Judge& judge) {
  const Field& field = judge.field();
  std::string text = fmt::format("No: one worker{}.", field.base->label.empty() ? "" : " (" + field.base->label + ")");
  if (const Rival* best = most_promising(judge))
    return text + fmt::format(
                      " The fastest other setting of equal quality is {}, at {} the speed of one worker{}; a gain "
                      "below {} does not count.",
                      said(*best->setting), times_text(best->speed.effect().value), interval_text(best->speed.effect()),
                      times_text(field.gain()));
  const auto all = [&](auto is) { return std::all_of(judge.rivals().begin(), judge.rivals().end(), is); };
  if (all([](const Rival& s) { return s.diverges; }))
    return text + " Every setting with more ranks diverged in some of its repetitions, and one worker in fewer.";
  if (field.by_time && all([](const Rival& s) { return s.diverges || s.misses_goal; }))
    return text + fmt::format(" No setting with more ranks reached {} in every repetition.", goal_text(field));
  return text + " Every setting with more ranks is worse or diverges.";
}

std::string undecided_text(const Judge& judge, int needed) {
  const Field& field = judge.field();
  if (field.base->ranks() != 1)
    return fmt::format("Not decided: no setting on one rank finished. Everything below is compared with {}.",
                       said(*field.base));
  if (judge.rivals().empty())
    return "Not decided: the study has only one size, so it cannot tell whether to distribute.";
  const Rival* best = most_promising(judge);
  if (best == nullptr) return "Not decided: no setting with more ranks has a repetition in common with one worker.";
  const Effect gain = best->speed.effect();
  const int pairs = judge.pairs();
  std::string text = needed > 0 ? fmt::format("Not decided: {} more {} needed.", needed,
                                              needed == 1 ? "repetition is" : "repetitions are")
                                : fmt::format("Not decided after {}.", repetitions_text(pairs));
  if (field.by_time && field.base->reached < field.base->tried())
    text += fmt::format(" One worker reached {} in {} of {}.", goal_text(field), field.base->reached,
                        repetitions_text(field.base->tried()));
  if (!std::isfinite(gain.value)) return text;
  text += fmt::format(" {}: {}", said(*best->setting), gain_text(field, gain));
  text += gain.pairs < kLeastTimings ? fmt::format(", in {}; at least {} are needed to name a winner.",
                                                   repetitions_text(gain.pairs), kLeastTimings)
                                     : fmt::format(", over {}.", repetitions_text(gain.pairs));
  if (best->quality && !best->not_worse) {
    if (!best->quality->enough())
      text += fmt::format(" Its {} is judged once there are {}.", field.metric_name(), repetitions_text(kLeastFigures));
    else
      text += fmt::format(" Its {} is not yet shown to be as good.", field.metric_name());
  }
  return text;
}

std::vector<PricedGain> faster_but_worse(const Judge& judge) {
  const Field& field = judge.field();
  std::vector<PricedGain> out;
  for (const Rival& s : judge.rivals()) {
    if (!s.faster || !s.worse || s.misses_goal) continue;
    PricedGain gain{.setting = field.index(*s.setting), .gain = s.speed.effect()};
    std::string price = s.setting->outcome_text(false);
    if (s.quality) {
      gain.loss = s.quality->effect();
      if (!s.diverges)
        price = fmt::format("{:.3g} {}{}", std::fabs(gain.loss.value), field.metric_name(), interval_text(gain.loss));
    }
    gain.text = fmt::format("{}: {}, at the price of {}.", said(*s.setting), gain_text(field, gain.gain), price);
    out.push_back(std::move(gain));
  }
  return out;
}

}  // namespace

std::string said(const Setting& s) { return counted(s.ranks(), "rank") + (s.label.empty() ? "" : ", " + s.label); }

std::string said(const std::vector<const Setting*>& settings) {
  const std::size_t named = settings.size() > kNamed + 1 ? kNamed : settings.size();
  std::string text;
  for (std::size_t i = 0; i < named; ++i)
    text += (i == 0 ? "" : i + 1 == settings.size() ? " and " : "; ") + said(*settings[i]);
  return named == settings.size() ? text : text + fmt::format(" and {} other settings", settings.size() - named);
}

std::string times_text(double times) {
  return times < 1.995 ? fmt::format("{:.2f}x", times) : fmt::format("{:.1f}x", times);
}

std::string interval_text(const Effect& effect) {
  if (!std::isfinite(effect.low)) return "";
  if (!effect.ratio) return fmt::format(" (95 % interval {:+.3g} to {:+.3g})", effect.low, effect.high);
  const bool fine = effect.value < 1.995 || effect.high - effect.low < 0.1;
  return fine ? fmt::format(" (95 % interval {:.2f} to {:.2f})", effect.low, effect.high)
              : fmt::format(" (95 % interval {:.1f} to {:.1f})", effect.low, effect.high);
}

std::string goal_text(const Field& field) {
  return fmt::format("{} {:.4g}", field.metric_name(), field.evidence.goal.target);
}

std::string gain_text(const Field& field, const Effect& gain) {
  const std::string one = field.base->ranks() == 1 ? "one worker" : said(*field.base);
  if (!std::isfinite(gain.value))
    return field.by_time ? fmt::format("It reached {} more often than {}", goal_text(field), one)
                         : "Faster than " + one;
  const std::string times = times_text(gain.value), interval = interval_text(gain);
  if (!field.by_time) return fmt::format("{} the samples/s of {}{}", times, one, interval);
  return gain.value >= 1 ? fmt::format("{} faster to {} than {}{}", times, goal_text(field), one, interval)
                         : fmt::format("{} as fast to {} as {}{}", times, goal_text(field), one, interval);
}

std::string repetitions_text(int repetitions) {
  return fmt::format("{} {}", repetitions, repetitions == 1 ? "repetition" : "repetitions");
}

EnvironmentVerdict answer_of(const Judge& judge) {
  const Field& field = judge.field();
  EnvironmentVerdict out{.environment = field.environment, .answer = judge.answer(), .headline = {}};
  out.baseline = field.index(*field.base);
  out.margin = field.by_time ? kUnknown : field.margin.value;
  out.repetitions = judge.pairs();
  out.needed = judge.needed();
  out.faster_but_worse = faster_but_worse(judge);
  if (const std::optional<Champion> champion = judge.recommended()) {
    out.recommended = field.index(*champion->chosen);
    for (const Setting* tie : champion->ties) out.ties.push_back(field.index(*tie));
    out.gain = Contest(field.speed, *champion->chosen, *field.base).effect();
    out.cost = as_cost(Contest(field.cost, *champion->chosen, *field.base).effect());
  }
  out.headline = out.answer == Answer::yes  ? yes_text(judge, out)
                 : out.answer == Answer::no ? no_text(judge)
                                            : undecided_text(judge, out.needed);
  return out;
}

}  // namespace echelon::inline report
