#include "report/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/text.hpp"

namespace echelon::inline report {
namespace {

class Judge {
 public:
  explicit Judge(const Evidence& evidence) : e_(evidence), by_time_(e_.has_goal() && e_.best_single().to_target()) {}

  StudyVerdict verdict() {
    single_worker();
    distribute();
    which_exchange();
    goals();
    return std::move(v_);
  }

 private:
  // Larger is faster: least, median and greatest of the repetitions.
  Spread speed(const Setting& s) const {
    if (!by_time_) return s.row.rate;
    if (!s.to_target()) return {};
    return {1 / s.seconds.median, 1 / s.seconds.high, 1 / s.seconds.low};
  }
  static std::int64_t samples(const Setting& s) { return s.row.steps * s.row.global_batch; }
  double gain(const Setting& s) const { return speed(s).median / speed(e_.best_single()).median; }
  bool faster(const Setting& a, const Setting& b) const { return speed(a).low > speed(b).high; }
  bool beats_one(const Setting& s) const { return s.ranks() > e_.best_single().ranks() && faster(s, e_.best_single()); }
  std::string how_fast(const Setting& s) const {
    if (!by_time_) return fmt::format("{} samples/s, {:.2f}x", rate_text(s.row.rate.median), gain(s));
    return fmt::format("{} to the target, {:.2f}x", seconds_text(s.seconds.median), gain(s));
  }

  // The setting with the greatest known value.
  const Setting* best(
      const std::function<double(const Setting&)>& value,
      const std::function<bool(const Setting&)>& among = [](const Setting&) { return true; }) const {
    const Setting* held = nullptr;
    for (const Setting& s : e_.settings)
      if (among(s) && std::isfinite(value(s)) && (held == nullptr || value(s) > value(*held))) held = &s;
    return held;
  }
  int index(const Setting& s) const { return static_cast<int>(&s - e_.settings.data()); }

  void say(const std::string& line) { v_.lines.push_back(line); }

  void single_worker() {
    const Setting& one = e_.best_single();
    if (!e_.single_is_one()) {
      say(fmt::format("No run on one rank: everything below is against {}, not against one worker.", name_of(one)));
      return;
    }
    if (!one.row.has_split) return;
    const StepTimes& t = one.row.time_split_s;
    const std::string of_peak = peak_text(one.row);
    const double step_s = t.training_s(), busy = (t.forward_s + t.backward_s) / step_s;
    if (busy < kBusyFloor)
      say(fmt::format(
          "Mend the single worker first: it computes for {:.0f} % of its step and waits for data for {:.0f} "
          "%; up to {:.1f}x are to be had there without a second rank{}.",
          100 * busy, 100 * t.data_wait_s / step_s, 1 / busy, of_peak));
    else
      say(fmt::format("The single worker computes for {:.0f} % of its step ({} samples/s{}): nothing to mend first.",
                      100 * busy, rate_text(one.row.rate.median), of_peak));
  }

  // "; it computes at 34 % of its peak"; "" where that was not measured, or means nothing.
  static std::string peak_text(const ScalingRow& row) {
    const StepTimes& t = row.time_split_s;
    if (!(row.peak_flops > 0) || row.paced || row.computes_at_pace()) return {};
    const double rate = row.flops_per_s(row.forward_flops + row.backward_flops, t.forward_s + t.backward_s);
    return fmt::format("; it computes at {:.0f} % of its peak", 100 * rate / row.peak_flops);
  }

  void distribute() {
    const Setting* fastest =
        best([&](const Setting& s) { return gain(s); }, [&](const Setting& s) { return beats_one(s); });
    if (e_.has_goal() && !by_time_)
      say(
          fmt::format("One worker did not reach {} {} in every repetition: speeds below are samples/s, and say nothing "
                      "about the time to it.",
                      goal_metric_name(e_.goal.metric), e_.goal.target));
    if (fastest == nullptr) {
      const bool tried = std::any_of(e_.settings.begin(), e_.settings.end(),
                                     [&](const Setting& s) { return s.ranks() > e_.best_single().ranks(); });
      say(tried ? "Do not distribute: no setting is faster than one worker beyond the spread of repetitions."
                : "Whether to distribute was not measured: the study has one size.");
      return;
    }
    v_.recommended = index(*fastest);
    say(fmt::format("Distribute: the least time is that of {} ({}).", name_of(*fastest), how_fast(*fastest)));
    if (const Spread& its = fastest->final_figure, &one = e_.best_single().final_figure;
        samples(*fastest) == samples(e_.best_single()) && std::isfinite(its.median) && std::isfinite(one.median))
      say(fmt::format("Its {} after equal samples: {:.4g} ({:.4g} to {:.4g}); one worker's: {:.4g} ({:.4g} to {:.4g}).",
                      figure_name(), its.median, its.low, its.high, one.median, one.low, one.high));
    sizes();
  }

  // The best setting of each size, the fewest ranks that gain, and the knee.
  void sizes() {
    std::map<int, const Setting*> by_ranks;
    for (const Setting& s : e_.settings) {
      if (!std::isfinite(gain(s))) continue;
      const Setting*& held = by_ranks[s.ranks()];
      if (held == nullptr || gain(s) > gain(*held)) held = &s;
    }
    const Setting *fewest = nullptr, *knee = nullptr, *before = nullptr, *beyond = nullptr;
    for (const auto& [ranks, s] : by_ranks) {
      if (fewest == nullptr && beats_one(*s)) fewest = s;
      if (before != nullptr && beyond == nullptr && gain(*s) < kKneeGain * gain(*before)) {
        knee = before;
        beyond = s;
      }
      before = s;
    }
    if (fewest != nullptr)
      say(fmt::format("Fewest ranks that gain: {} ({}, on {}).", name_of(*fewest), how_fast(*fewest),
                      counted(fewest->row.hosts, "host")));
    if (beyond != nullptr)
      say(fmt::format("Up to {}: {} bring {:.2f}x of that.", name_of(*knee), counted(beyond->ranks(), "rank"),
                      gain(*beyond) / gain(*knee)));
    else if (before != nullptr && before->ranks() > 1)
      say(fmt::format("Up to {} at least: the largest size that was run still gains (efficiency {:.0f} %).",
                      counted(before->ranks(), "rank"), 100 * gain(*before) / before->ranks()));
    no_better();
  }

  void no_better() {
    std::string names;
    for (const Setting& s : e_.settings)
      if (s.ranks() > e_.best_single().ranks() && std::isfinite(gain(s)) && !beats_one(s))
        names += (names.empty() ? "" : "; ") + fmt::format("{} ({:.2f}x)", name_of(s), gain(s));
    if (!names.empty()) say(fmt::format("No better than one worker, at their ranks' cost: {}.", names));
  }

  void which_exchange() {
    const auto several = [&](const Setting& s) { return s.ranks() > e_.best_single().ranks(); };
    if (const Setting* found = best([](const Setting& s) { return s.row.rate.median; }, several))
      say(fmt::format("Most samples/s: {} ({}).", name_of(*found), rate_text(found->row.rate.median)));
    const bool equal = std::all_of(e_.settings.begin(), e_.settings.end(),
                                   [&](const Setting& s) { return samples(s) == samples(e_.best_single()); });
    if (const Setting* found = equal ? best([&](const Setting& s) { return quality(s); }, several) : nullptr)
      say(fmt::format("Best {} after equal samples: {} ({:.4g}); one worker {:.4g}.", figure_name(), name_of(*found),
                      found->final_figure.median, e_.best_single().final_figure.median));
    if (!by_time_) return;
    if (const Setting* found = best([&](const Setting& s) { return -s.samples.median; }, several))
      say(fmt::format("Fewest samples to the target: {} ({}, {:.2f}x of one worker's).", name_of(*found),
                      count_text(static_cast<std::int64_t>(found->samples.median)),
                      found->samples.median / e_.best_single().samples.median));
    if (const Setting* found = best([&](const Setting& s) { return -e_.node_hours(s); }))
      say(fmt::format("Cheapest to the target: {} ({}).", name_of(*found), cost_text(*found)));
    if (e_.goal.deadline_h == 0) return;
    const auto in_time = [&](const Setting& s) { return s.wall_s(true) <= 3600 * e_.goal.deadline_h; };
    if (const Setting* found = best([&](const Setting& s) { return -e_.node_hours(s); }, in_time))
      say(fmt::format("Cheapest by the deadline: {} ({}, {}).", name_of(*found), cost_text(*found),
                      seconds_text(found->wall_s(true))));
  }

  bool is_loss() const {
    return e_.has_goal() ? e_.goal.metric != GoalMetric::test_accuracy : std::isnan(e_.best_single().row.test_accuracy);
  }
  double quality(const Setting& s) const { return is_loss() ? -s.final_figure.median : s.final_figure.median; }
  std::string figure_name() const {
    return e_.has_goal() ? goal_metric_name(e_.goal.metric) : is_loss() ? "test loss" : "test accuracy";
  }
  std::string cost_text(const Setting& s) const {
    const std::string hours = fmt::format("{:.3g} node-hours", e_.node_hours(s));
    return e_.cost.node_hour > 0 ? fmt::format("{}, {:.3g} {}", hours, e_.price(s), e_.cost.currency) : hours;
  }

  // One setting must keep all limits: the recommended one where it does, else the fastest that does.
  void goals() {
    if (e_.settings.empty()) return;
    const auto limits = limits_of_goal();
    if (limits.empty()) return;
    const auto keeps_all = [&](const Setting& s) {
      return std::all_of(limits.begin(), limits.end(), [&](const Limit& limit) { return limit.kept(s); });
    };
    const Setting* judged = best([&](const Setting& s) { return speed(s).median; }, keeps_all);
    if (judged != nullptr) v_.recommended = index(*judged);
    if (judged == nullptr)
      judged = v_.recommended >= 0 ? &e_.settings[static_cast<std::size_t>(v_.recommended)] : &e_.best_single();
    for (const Limit& limit : limits)
      v_.goals.push_back({limit.kept(*judged), fmt::format("{}: {}", name_of(*judged), limit.text(*judged))});
  }

  struct Limit {
    std::function<bool(const Setting&)> kept;
    std::function<std::string(const Setting&)> text;
  };
  std::vector<Limit> limits_of_goal() const {
    const GoalConfig& g = e_.goal;
    std::vector<Limit> all;
    if (e_.has_goal())
      all.push_back({[](const Setting& s) { return s.to_target(); },
                     [this, g](const Setting& s) {
                       return fmt::format("{} {} reached by {} of {}", goal_metric_name(g.metric), g.target, s.reached,
                                          counted(s.row.attempts, "repetition"));
                     }});
    if (g.most_samples > 0) {
      const double base = e_.best_single().samples.median;
      all.push_back({[=](const Setting& s) { return s.samples.median <= g.most_samples * base; },
                     [=](const Setting& s) {
                       const double times = s.samples.median / base;
                       if (std::isnan(times))
                         return fmt::format("samples to the target unknown, at most {}x those of the fewest ranks",
                                            g.most_samples);
                       return fmt::format("{:.2f}x the samples of the fewest ranks, at most {}", times, g.most_samples);
                     }});
    }
    if (g.least_efficiency > 0)
      all.push_back({[=](const Setting& s) { return s.row.efficiency >= g.least_efficiency; },
                     [=](const Setting& s) {
                       return fmt::format("efficiency {:.0f} %, at least {:.0f} %", 100 * s.row.efficiency,
                                          100 * g.least_efficiency);
                     }});
    if (g.greatest_cost > 0)
      all.push_back({[this, g](const Setting& s) { return e_.price(s) <= g.greatest_cost; },
                     [this, g](const Setting& s) {
                       const std::string limit = fmt::format("at most {} {}", g.greatest_cost, e_.cost.currency);
                       if (std::isnan(e_.price(s))) return "cost to the target unknown, " + limit;
                       return fmt::format("{:.3g} {}, {}", e_.price(s), e_.cost.currency, limit);
                     }});
    if (g.deadline_h > 0)
      all.push_back({[this, g](const Setting& s) { return s.wall_s(e_.has_goal()) <= 3600 * g.deadline_h; },
                     [this, g](const Setting& s) {
                       const double wall_s = s.wall_s(e_.has_goal());
                       return fmt::format("{}, at most {}",
                                          std::isnan(wall_s) ? "time to the target unknown" : seconds_text(wall_s),
                                          seconds_text(3600 * g.deadline_h));
                     }});
    return all;
  }

  const Evidence& e_;
  const bool by_time_;
  StudyVerdict v_;
};

}  // namespace

bool StudyVerdict::met() const {
  return std::all_of(goals.begin(), goals.end(), [](const GoalLine& goal) { return goal.met; });
}

std::string name_of(const Setting& setting) {
  return fmt::format("{}{}", setting.label.empty() ? "" : setting.label + " on ", counted(setting.ranks(), "rank"));
}

StudyVerdict make_verdict(const Evidence& evidence) {
  if (evidence.baseline < 0) return {.lines = {"No run of the study finished: nothing was measured."}, .goals = {}};
  return Judge(evidence).verdict();
}

}  // namespace echelon::inline report
