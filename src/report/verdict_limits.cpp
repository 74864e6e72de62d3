// SPDX-License-Identifier: Apache-2.0
// Sentences about what limits the speed, and caveats to keep in mind when reading the answer.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.hpp"
#include "report/verdict.hpp"
#include "report/verdict_words.hpp"

namespace echelon::inline report {
namespace {

constexpr double kFlipsDoubt = 0.05;

// Unknown if the peak was not measured or is meaningless.
double share_of_peak(const ScalingRow& row) {
  const StepTimes& t = row.time_split_s;
  if (!(row.peak_flops > 0) || row.paced || row.computes_at_pace()) return kUnknown;
  return row.flops_per_s(row.forward_flops + row.backward_flops, t.forward_s + t.backward_s) / row.peak_flops;
}

// Whether the single worker should be improved first.
void single_worker(const Field& field, std::vector<std::string>& out) {
  const ScalingRow& row = field.base->row;
  if (field.base->ranks() != 1 || !row.has_split) return;
  const StepTimes& t = row.time_split_s;
  const double step_s = t.training_s(), busy = (t.forward_s + t.backward_s) / step_s, of_peak = share_of_peak(row);
  if (!(busy > 0)) return;
  const std::string computes =
      fmt::format("computes for {:.0f} % of its step (minimum {:.0f} %", 100 * busy, 100 * kBusyFloor);
  if (busy < kBusyFloor)
    out.push_back(fmt::format(
        "Improve the single worker first: it {}) and waits for data for {:.0f} %; up to {:.1f}x can be gained.",
        computes, 100 * t.data_wait_s / step_s, 1 / busy));
  else
    out.push_back(fmt::format("The single worker {}; {} samples/s){}.", computes, rate_text(row.rate.median),
                              of_peak < kPeakFloor ? "" : ": it need not be improved first"));
  if (std::isfinite(of_peak))
    out.push_back(
        fmt::format("It computes at {:.0f} % of its peak rate (minimum {:.0f} %, a rule of thumb{}.", 100 * of_peak,
                    100 * kPeakFloor,
                    of_peak < kPeakFloor ? "; memory traffic bounds small models): see `echelon bench step`" : ")"));
}

// For each size the fastest setting that is not worse; names the first size that gains too little over the one before.
void sizes(const Judge& judge, std::vector<std::string>& out) {
  const Field& field = judge.field();
  std::map<int, const Setting*> by_ranks = {{field.base->ranks(), field.base}};
  for (const Rival& s : judge.rivals()) {
    if (s.worse || !std::isfinite(typical(field.speed, *s.setting))) continue;
    const Setting*& held = by_ranks[s.setting->ranks()];
    if (held == nullptr || typical(field.speed, *s.setting) > typical(field.speed, *held)) held = s.setting;
  }
  const Setting* before = nullptr;
  for (const auto& [ranks, s] : by_ranks) {
    if (before != nullptr) {
      const Contest step(field.speed, *s, *before);
      const Effect gain = step.effect();
      if (step.enough() && std::isfinite(gain.value) && step.better(field.log_gain()) > look_level(Tested::timing)) {
        if (before != field.base)
          out.push_back(fmt::format("The gain ends at {}: {} reach only {} its speed{}.", said(*before), said(*s),
                                    fmt::format("{:.2f}x", gain.value), interval_text(gain)));
        return;
      }
    }
    before = s;
  }
  if (before == field.base || before->finished() < kLeastTimings) return;
  const Effect whole = Contest(field.speed, *before, *field.base).effect();
  if (std::isfinite(whole.value))
    out.push_back(fmt::format("The gain does not end at {}, the largest size that was run (efficiency {:.0f} %).",
                              counted(before->ranks(), "rank"),
                              100 * whole.value * field.base->ranks() / before->ranks()));
}

// Findings of the runs themselves: a slow link, or nothing was learned.
void findings(const Field& field, std::vector<std::string>& out) {
  for (const Setting* s : field.members)
    for (const std::string& finding : s->row.findings) out.push_back(fmt::format("{}: {}.", said(*s), finding));
}

void no_better(const Judge& judge, std::vector<std::string>& out) {
  std::string slower, alike;
  for (const Rival& s : judge.rivals()) {
    if (!s.slower) continue;
    const Effect gain = s.speed.effect();
    std::string& names = judge.as_fast_as_one(s) ? alike : slower;
    names += (names.empty() ? "" : "; ") + said(*s.setting);
    if (std::isfinite(gain.value)) names += fmt::format(" ({:.2f}x)", gain.value);
  }
  if (!alike.empty()) out.push_back("As fast as one worker, but at the cost of more ranks: " + alike + ".");
  if (!slower.empty()) out.push_back("Slower than one worker or no faster, at the cost of more ranks: " + slower + ".");
}

void margin(const Judge& judge, std::vector<std::string>& out) {
  const Field& field = judge.field();
  if (judge.rivals().empty()) return;
  if (field.by_time)
    out.push_back(fmt::format("Equal quality means that a setting reached {} in every repetition.", goal_text(field)));
  else if (!field.has_metric)
    out.emplace_back("Quality was not compared: losses and accuracies of one worker are unknown or meaningless.");
  else
    out.push_back(fmt::format(
        "Equal quality means that {} is shown to be at most {:.3g} worse than one worker's; this margin is {}.",
        field.metric_name(), field.margin.value,
        field.margin.of_seeds ? "the standard deviation of its repetitions"
                              : fmt::format("{:.3g} % of it (study.margin)", 100 * field.evidence.rules.margin)));
}

void how_judged(const Judge& judge, std::vector<std::string>& out) {
  const auto compared = std::ssize(judge.rivals());
  if (judge.pairs() < kLeastTimings || compared == 0) return;
  out.push_back(fmt::format(
      "The probability of any false winner is at most {:.0f} %, over {} and all looks (3, 5, 10, 20 repetitions); "
      "each interval is that of one comparison alone{}.",
      100 * kStudyError, compared == 1 ? "the one setting compared" : counted(compared, "setting") + " compared",
      compared == 1 ? "" : ", so that of the setting chosen as the best of several is too favourable"));
}

void outcomes(const Field& field, std::vector<std::string>& out) {
  for (const Setting* s : field.members)
    if (s->diverged + s->failed > 0 || (field.by_time && !s->to_target()))
      out.push_back(fmt::format("{}: {}.", said(*s), s->outcome_text(field.by_time)));
  if (field.evidence.has_goal() && !field.by_time)
    out.push_back(
        fmt::format("No setting reached {}: speeds are in samples/s and say nothing about the time to reach it.",
                    goal_text(field)));
  std::size_t most = 0;
  for (const Setting* s : field.members) most = std::max(most, s->repetitions.size());
  std::vector<const Setting*> short_of;
  for (const Setting* s : field.members)
    if (s->repetitions.size() < most) short_of.push_back(s);
  if (!short_of.empty())
    out.push_back(fmt::format(
        "Repetitions are missing: {} have fewer than {}; only repetitions that both settings have are compared.",
        said(short_of), most));
}

void machine(const Field& field, std::vector<std::string>& out) {
  std::map<int, double> moved;
  for (const Setting* s : field.members)
    for (const Repetition& r : s->repetitions)
      if (r.marked()) moved[r.repeat] = r.machine;
  if (moved.empty()) return;
  std::string rounds;
  for (const auto& [round, machine] : moved)
    rounds += fmt::format("{}{} ({:.2f}x)", rounds.empty() ? "" : ", ", round, machine);
  out.push_back(
      fmt::format("The speed of the machine changed by more than {:.0f} %, as the control cell shows: {} {}. Times of "
                  "{} are marked; settings are compared within a round, in which the machine was the same.",
                  100 * kMachineMoved, moved.size() == 1 ? "in round" : "in rounds", rounds,
                  moved.size() == 1 ? "this round" : "these rounds"));
}

void pace(const Field& field, std::vector<std::string>& out) {
  const auto late = [](const Setting& s) {
    return largest(s.row.pace_over_steps) * s.row.attempts / s.row.counted_steps();
  };
  std::size_t count = 0;
  const Setting* worst = nullptr;
  for (const Setting* s : field.members) {
    if (!s->row.computes_at_pace() || !(late(*s) > kPaceMissed)) continue;
    ++count;
    if (worst == nullptr || late(*s) > late(*worst)) worst = s;
  }
  if (worst == nullptr) return;
  out.push_back(fmt::format(
      "{} of {} took longer than their pace (device.pace_ms): the worst is {}, in {:.0f} % of a rank's steps, the "
      "longest of which took {:.1f}x the pace. Their times are those of this machine; choose a longer pace.",
      count, counted(std::ssize(field.members), "setting"), said(*worst), 100 * late(*worst),
      largest(worst->row.pace_worst)));
}

void shaped(const Field& field, std::vector<std::string>& out) {
  std::set<std::string> networks;
  for (const Setting* s : field.members)
    if (s->ranks() > 1 && !s->row.shaped.empty()) networks.insert(s->row.shaped);
  if (!networks.empty())
    out.push_back(fmt::format("Messages were slowed down to {}: the answer holds for such a network.",
                              fmt::join(networks, "; ")));
}

// The t test assumes normal differences. Warns if the answer depends on that and sign flips would not give it.
void flips(const Judge& judge, std::vector<std::string>& out) {
  for (const Rival& s : judge.rivals()) {
    if (!s.winner) continue;
    const double p = s.speed.flips(judge.field().log_gain());
    if (p > kFlipsDoubt)
      out.push_back(
          fmt::format("{}: an exact sign-flip test gives p = {:.2g}, although the t test shows a gain: its repetitions "
                      "are far from normally distributed.",
                      said(*s.setting), p));
  }
}

}  // namespace

std::vector<std::string> limits_of(const Judge& judge) {
  std::vector<std::string> out;
  single_worker(judge.field(), out);
  sizes(judge, out);
  findings(judge.field(), out);
  no_better(judge, out);
  return out;
}

std::vector<std::string> caveats_of(const Judge& judge) {
  std::vector<std::string> out;
  outcomes(judge.field(), out);
  machine(judge.field(), out);
  pace(judge.field(), out);
  shaped(judge.field(), out);
  flips(judge, out);
  margin(judge, out);
  how_judged(judge, out);
  return out;
}

}  // namespace echelon::inline report
