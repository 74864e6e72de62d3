// SPDX-License-Identifier: Apache-2.0
// Rows "If you want .. then ..". The same tests make every row, and one worker is among the candidates.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "report/verdict_words.hpp"

namespace echelon::inline report {
namespace {

class Rows {
 public:
  explicit Rows(const Judge& judge) : judge_(judge), field_(judge.field()) {}

  std::vector<GoalRow> all() {
    const std::vector<const Setting*> good = judge_.of_equal_quality();
    constexpr double kAny = 1;  // ratio: any shown gain wins, and the rest is a tie
    const bool decides = !field_.by_time && field_.has_metric;
    const std::string equal = field_.has_metric && !field_.by_time ? " at equal " + field_.metric_name() : "";
    if (field_.by_time)
      row("the least time to " + goal_text(field_), field_.speed, shown_faster(good), kAny, decides);
    else
      row("the most samples/s" + equal, field_.speed, shown_faster(good), kAny, decides);
    if (field_.has_metric) {
      const std::string best = "the best " + field_.metric_name();
      row(fmt::format("{} after {}", best, counted(std::llround(field_.samples), "sample")), field_.metric, members(),
          0, false);
      if (std::isfinite(field_.seconds))
        row(fmt::format("{} {} {}", best, field_.evidence.goal.deadline_h > 0 ? "by the deadline of" : "in",
                        seconds_text(field_.seconds)),
            field_.metric_in_time, members(), 0, false);
    }
    const std::string of_run = field_.by_time ? "to " + goal_text(field_)
                               : std::isfinite(field_.samples)
                                   ? "for " + counted(std::llround(field_.samples), "sample") + equal
                                   : "of a run" + equal;
    row("the lowest cost " + of_run, field_.cost, good, kAny, decides);
    if (field_.evidence.goal.deadline_h > 0)
      row("the lowest cost by the deadline", field_.cost, in_time(good), kAny, decides);
    if (field_.by_time) row("the fewest samples to " + goal_text(field_), field_.samples_to_goal, good, kAny, decides);
    row("the most samples/s at any quality", field_.rate, fastest_members(), kAny, false);
    fewest_ranks();
    return std::move(rows_);
  }

 private:
  std::vector<const Setting*> members() const {
    std::vector<const Setting*> all;
    for (const Setting* s : field_.members)
      if (s->finished() > 0) all.push_back(s);
    return all;
  }

  // Keeps the settings that are shown to be faster than one worker, if there are any: nothing else is tied with them.
  std::vector<const Setting*> shown_faster(std::vector<const Setting*> from) const {
    const auto wins = [&](const Setting* s) {
      return std::any_of(judge_.rivals().begin(), judge_.rivals().end(),
                         [&](const Rival& rival) { return rival.setting == s && rival.winner; });
    };
    if (std::any_of(from.begin(), from.end(), wins)) std::erase_if(from, [&](const Setting* s) { return !wins(s); });
    return from;
  }

  // The same at any quality: leaves out one worker if it is shown to process fewer samples/s than another setting.
  std::vector<const Setting*> fastest_members() const {
    std::vector<const Setting*> all = members();
    if (!field_.by_time && shown_faster(all).size() < all.size())
      std::erase_if(all, [&](const Setting* s) { return s->ranks() <= field_.base->ranks(); });
    return all;
  }

  // Keeps the settings that meet the deadline in every repetition.
  std::vector<const Setting*> in_time(std::vector<const Setting*> from) const {
    std::erase_if(from, [&](const Setting* s) {
      return !std::all_of(s->repetitions.begin(), s->repetitions.end(), [&](const Repetition& r) {
        const double spent = field_.by_time ? r.seconds_to_target : r.wall_s;
        return spent <= 3600 * field_.evidence.goal.deadline_h;
      });
    });
    return from;
  }

  std::string value_text(const Measure& measure, const Setting& s) const {
    std::vector<double> values;
    for (const Repetition& r : s.repetitions)
      if (r.finished()) values.push_back(measure.value(s, r));
    const double middle = median(values);
    if (&measure == &field_.rate || measure.name == "samples/s") return rate_text(middle) + " samples/s";
    if (measure.name == field_.cost.name) {
      const CostConfig& cost = field_.evidence.cost;
      return has_price(cost) ? fmt::format("{:.3g} {}", middle, cost.currency)
                             : fmt::format("{:.3g} node-hours", middle);
    }
    if (measure.name == "seconds to the target") return seconds_text(middle);
    if (measure.name == "samples to the target") return counted(std::llround(middle), "sample");
    return fmt::format("{:.4g}", middle);
  }

  // "1.9x the samples/s of one worker (95 % interval ..)".
  std::string beside_one(const Measure& measure, const Effect& effect) const {
    if (effect.pairs == 0 || !std::isfinite(effect.value)) return "";
    const std::string one = field_.base->ranks() == 1 ? "one worker" : said(*field_.base);
    if (!effect.ratio && effect.low <= 0 && effect.high >= 0)
      return fmt::format(", not distinguishable from {}{}", one, interval_text(effect));
    if (!effect.ratio)
      return fmt::format(", {:.3g} {} than {}{}", std::fabs(effect.value), effect.value < 0 ? "worse" : "better", one,
                         interval_text(effect));
    if (measure.name == field_.cost.name) {
      const Effect cost{
          .value = 1 / effect.value, .low = 1 / effect.high, .high = 1 / effect.low, .pairs = effect.pairs};
      return fmt::format(", {:.2f}x the cost of {}{}", cost.value, one, interval_text(cost));
    }
    const char* times = measure.name == "samples/s"               ? "the samples/s of"
                        : measure.name == "seconds to the target" ? "as fast as"
                                                                  : "fewer than";
    return fmt::format(", {} {} {}{}", times_text(effect.value), times, one, interval_text(effect));
  }

  void row(const std::string& want, const Measure& measure, const std::vector<const Setting*>& among, double threshold,
           bool of_quality) {
    GoalRow out{.environment = field_.environment, .want = want, .value = {}, .effect = {.ratio = measure.ratio}};
    const int least = least_repetitions(measure.tested);
    const bool one_alone = members().size() < 2;
    const std::optional<Champion> champion = judge_.champion(measure, among, threshold);
    if (one_alone) return;  // there is no choice
    const bool quality_waits = of_quality && waiting(among);
    if (!champion || quality_waits) {
      const bool few = most_finished() < (quality_waits ? kLeastFigures : least);
      out.text = few ? fmt::format("{}: not decided; {} are needed.", want,
                                   repetitions_text(quality_waits ? kLeastFigures : least))
                     : fmt::format("{}: no setting qualifies.", want);
      rows_.push_back(std::move(out));
      return;
    }
    const Setting& chosen = *champion->chosen;
    out.setting = field_.index(chosen);
    out.value = value_text(measure, chosen);
    if (!field_.is_base(chosen)) out.effect = Contest(measure, chosen, *field_.base).effect();
    for (const Setting* tie : champion->ties) out.ties.push_back(field_.index(*tie));
    out.text = fmt::format("{}: {} ({}{}){}.", want, said(chosen), out.value, beside_one(measure, out.effect),
                           champion->ties.empty() ? "" : "; tied with " + said(champion->ties));
    rows_.push_back(std::move(out));
  }

  int most_finished() const {
    int most = 0;
    for (const Setting* s : field_.members) most = std::max(most, s->finished());
    return most;
  }
  // Whether quality decides who may be chosen but has too few repetitions.
  bool waiting(const std::vector<const Setting*>& among) const {
    return among.size() < members().size() && most_finished() < kLeastFigures;
  }

  void fewest_ranks() {
    const Setting* fewest = nullptr;
    for (const Rival& s : judge_.rivals())
      if (s.winner && field_.base->ranks() == 1 &&
          (fewest == nullptr || s.setting->ranks() < fewest->ranks() ||
           (s.setting->ranks() == fewest->ranks() &&
            typical(field_.speed, *s.setting) > typical(field_.speed, *fewest))))
        fewest = s.setting;
    if (fewest == nullptr) return;
    GoalRow out{.environment = field_.environment,
                .want = "the fewest ranks that gain",
                .setting = field_.index(*fewest),
                .value = fmt::format("{} on {}", counted(fewest->ranks(), "rank"), counted(fewest->row.hosts, "host")),
                .effect = Contest(field_.speed, *fewest, *field_.base).effect()};
    out.text = fmt::format("{}: {} ({}).", out.want, said(*fewest), gain_text(field_, out.effect));
    rows_.push_back(std::move(out));
  }

  const Judge& judge_;
  const Field& field_;
  std::vector<GoalRow> rows_;
};

}  // namespace

std::vector<GoalRow> goal_rows(const Judge& judge) { return Rows(judge).all(); }

}  // namespace echelon::inline report
