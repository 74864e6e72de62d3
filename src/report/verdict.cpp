#include "report/verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/text.hpp"

namespace echelon::inline report {
namespace {

class Judge {
 public:
  explicit Judge(const Evidence& evidence)
      : e_(evidence),
        by_time_(e_.has_goal() && e_.best_single().to_target()),
        equal_(equally_long()),
        samples_(equal_ ? e_.best_single().trained.median : e_.common_point(&Evaluation::samples)) {}

  StudyVerdict verdict() {
    single_worker();
    pace();
    distribute();
    which_exchange();
    goals();
    return std::move(v_);
  }

 private:
  using Values = std::function<double(const Setting&)>;
  using Among = std::function<bool(const Setting&)>;

  // Larger is faster: least, median and greatest of the repetitions.
  Spread speed(const Setting& s) const {
    if (!by_time_) return s.row.rate;
    if (!s.to_target()) return {};
    return {1 / s.seconds.median, 1 / s.seconds.high, 1 / s.seconds.low};
  }
  double gain(const Setting& s) const { return speed(s).median / speed(e_.best_single()).median; }
  bool faster(const Setting& a, const Setting& b) const { return speed(a).low > speed(b).high; }
  bool beats_one(const Setting& s) const { return s.ranks() > e_.best_single().ranks() && faster(s, e_.best_single()); }
  std::string how_fast(const Setting& s) const {
    if (!by_time_) return fmt::format("{} samples/s, {:.2f}x", rate_text(s.row.rate.median), gain(s));
    return fmt::format("{} to the target, {:.2f}x", seconds_text(s.seconds.median), gain(s));
  }

  // The setting with the greatest known value.
  const Setting* best(
      const Values& value, const Among& among = [](const Setting&) { return true; }) const {
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
    const double step_s = t.training_s(), busy = (t.forward_s + t.backward_s) / step_s,
                 of_peak = share_of_peak(one.row);
    if (!(busy > 0)) return;
    const std::string computes =
        fmt::format("computes for {:.0f} % of its step (floor {:.0f} %", 100 * busy, 100 * kBusyFloor);
    if (busy < kBusyFloor)
      say(fmt::format("Mend the single worker first: it {}) and waits for data for {:.0f} %; up to {:.1f}x to gain.",
                      computes, 100 * t.data_wait_s / step_s, 1 / busy));
    else
      say(fmt::format("The single worker {}; {} samples/s){}.", computes, rate_text(one.row.rate.median),
                      of_peak < kPeakFloor ? "" : ": nothing to mend first"));
    if (std::isfinite(of_peak))
      say(fmt::format("It computes at {:.0f} % of its peak (floor {:.0f} %, a rule of thumb{}.", 100 * of_peak,
                      100 * kPeakFloor,
                      of_peak < kPeakFloor ? "; memory traffic bounds small models): see `echelon bench step`" : ")"));
  }

  void pace() {
    std::set<std::string> networks;
    for (const Setting& s : e_.settings)
      if (!s.row.shaped.empty()) networks.insert(s.row.shaped);
    if (!networks.empty())
      say(fmt::format("Shaped: messages were slowed down to {}; what follows holds for networks like that.",
                      fmt::join(networks, "; ")));
    const auto late = [](const Setting& s) {
      return largest(s.row.pace_over_steps) * s.row.attempts / s.row.counted_steps();
    };
    const auto missed = [&](const Setting& s) { return s.row.computes_at_pace() && late(s) > kPaceMissed; };
    const auto count = std::count_if(e_.settings.begin(), e_.settings.end(), missed);
    if (const Setting* worst = best(late, missed))
      say(
          fmt::format("{} of {} took longer than their pace (device.pace_ms): worst {}, {:.0f} % of a rank's steps, "
                      "the longest {:.1f}x. Their times are this machine's; a longer pace would hold.",
                      count, counted(std::ssize(e_.settings), "setting"), name_of(*worst), 100 * late(*worst),
                      largest(worst->row.pace_worst)));
  }

  // Unknown where the peak was not measured, or means nothing.
  static double share_of_peak(const ScalingRow& row) {
    const StepTimes& t = row.time_split_s;
    if (!(row.peak_flops > 0) || row.paced || row.computes_at_pace()) return kUnknown;
    return row.flops_per_s(row.forward_flops + row.backward_flops, t.forward_s + t.backward_s) / row.peak_flops;
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
    if (const Spread its = at_equal_samples(*fastest), one = at_equal_samples(e_.best_single());
        std::isfinite(its.median) && std::isfinite(one.median))
      say(fmt::format("Its {} after {}: {:.4g} ({:.4g} to {:.4g}); one worker's: {:.4g} ({:.4g} to {:.4g}).",
                      figure_name(), samples_text(), its.median, its.low, its.high, one.median, one.low, one.high));
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
    const auto several_to_target = [&](const Setting& s) { return several(s) && s.to_target(); };
    if (const Setting* found = best([](const Setting& s) { return s.row.rate.median; }, several))
      say(fmt::format("Most samples/s: {} ({}).", name_of(*found), rate_text(found->row.rate.median)));
    best_figure(
        fmt::format("after {}", samples_text()), [&](const Setting& s) { return at_equal_samples(s).median; }, several);
    in_given_time(several);
    if (const Setting* found = best([&](const Setting& s) { return -s.samples.median; }, several_to_target))
      say(fmt::format(
          "Fewest samples to the target: {} ({}{}).", name_of(*found), count_text(std::llround(found->samples.median)),
          by_time_ ? fmt::format(", {:.2f}x of one worker's", found->samples.median / e_.best_single().samples.median)
                   : ""));
    cheapest();
  }

  // The figures of the settings at one place along their curves, the best of them beside one worker's.
  void best_figure(const std::string& where, const Values& figure, const Among& among) {
    const double sign = is_loss() ? -1 : 1, one = figure(e_.best_single());
    const Setting* found = best([&](const Setting& s) { return sign * figure(s); }, among);
    if (found == nullptr || known(figure) < 2) return;
    say(fmt::format("Best {} {}: {} ({:.4g}); one worker {}.{}", figure_name(), where, name_of(*found), figure(*found),
                    std::isfinite(one) ? fmt::format("{:.4g}", one) : "has no figure at this point",
                    left_out(figure, among)));
  }
  std::ptrdiff_t known(const Values& value) const {
    return std::count_if(e_.settings.begin(), e_.settings.end(),
                         [&](const Setting& s) { return std::isfinite(value(s)); });
  }
  // " Not compared: 2 settings."
  std::string left_out(const Values& value, const Among& among) const {
    const auto count = std::count_if(e_.settings.begin(), e_.settings.end(),
                                     [&](const Setting& s) { return among(s) && !std::isfinite(value(s)); });
    return count == 0 ? "" : fmt::format(" Not compared: {}.", counted(count, "setting"));
  }

  void in_given_time(const Among& among) {
    const bool given = e_.goal.deadline_h > 0;
    const double seconds = given ? 3600 * e_.goal.deadline_h : e_.common_point(&Evaluation::seconds);
    if (!std::isfinite(seconds)) return;
    best_figure(
        fmt::format("{} {}", given ? "by the deadline of" : "in", seconds_text(seconds)),
        [&](const Setting& s) { return e_.figure_at(s, &Evaluation::seconds, seconds).median; }, among);
  }

  // To the target where some setting reaches it, else of equal samples.
  void cheapest() {
    const bool to_target =
        std::any_of(e_.settings.begin(), e_.settings.end(), [](const Setting& s) { return s.to_target(); });
    const auto seconds = [&](const Setting& s) {
      return to_target ? s.wall_s(true) : equal_ ? s.run_s : e_.seconds_after(s, samples_);
    };
    const auto cost = [&](const Setting& s) { return -e_.node_hours(s, seconds(s)); };
    if (!to_target && known(cost) < 2) return;
    if (const Setting* found = best(cost))
      say(fmt::format("Cheapest {}: {} ({}).{}", to_target ? "to the target" : "for " + samples_text(), name_of(*found),
                      cost_text(*found, seconds(*found)),
                      to_target ? "" : left_out(seconds, [](const Setting&) { return true; })));
    if (e_.goal.deadline_h == 0) return;
    const auto in_time = [&](const Setting& s) { return seconds(s) <= 3600 * e_.goal.deadline_h; };
    if (const Setting* found = best(cost, in_time))
      say(fmt::format("Cheapest by the deadline: {} ({}, {}).", name_of(*found), cost_text(*found, seconds(*found)),
                      seconds_text(seconds(*found))));
  }

  // Samples at which settings are compared: of their whole runs where these are equal, else of the shortest ones.
  bool equally_long() const {
    const double first = e_.best_single().trained.median;
    return std::all_of(e_.settings.begin(), e_.settings.end(),
                       [&](const Setting& s) { return s.trained.low == first && s.trained.high == first; });
  }
  Spread at_equal_samples(const Setting& s) const {
    return equal_ ? s.final_figure : e_.figure_at(s, &Evaluation::samples, samples_);
  }
  std::string samples_text() const { return std::isfinite(samples_) ? counted(std::llround(samples_), "sample") : ""; }

  bool is_loss() const { return shown_metric(e_) != GoalMetric::test_accuracy; }
  std::string figure_name() const { return replaced(goal_metric_name(shown_metric(e_)), "_", " "); }
  std::string cost_text(const Setting& s, double seconds) const {
    const std::string hours = fmt::format("{:.3g} node-hours", e_.node_hours(s, seconds));
    return e_.cost.node_hour > 0 ? fmt::format("{}, {:.3g} {}", hours, e_.price(s, seconds), e_.cost.currency) : hours;
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
  const bool by_time_, equal_;
  const double samples_;
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
