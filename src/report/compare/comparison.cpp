// SPDX-License-Identifier: Apache-2.0
#include "report/compare/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "report/compare/experiments.hpp"
#include "report/compare/noise.hpp"
#include "report/figures_list.hpp"
#include "report/metrics_file.hpp"

namespace echelon::inline report {
namespace {

using Attempts = std::vector<const RunRecord*>;

// Figures of summary.json other than throughput.
struct Plain {
  const char* name;
  FigureGroup group;
};
constexpr Plain kPlain[] = {
    {"test_accuracy", FigureGroup::accuracy},
    {"test_loss", FigureGroup::loss},
    {"train_loss", FigureGroup::loss},
    {"wire_bytes_per_step", FigureGroup::counts},
    {"down_bytes_per_step", FigureGroup::counts},
    {"messages_per_step", FigureGroup::counts},
    {"library_bytes_per_step", FigureGroup::counts},
    {"split_bytes_per_step", FigureGroup::counts},
    {"halo_bytes_per_step", FigureGroup::counts},
    {"allocations_per_step", FigureGroup::counts},
    {"allocated_bytes_per_step", FigureGroup::counts},
    {"peak_rss_mb", FigureGroup::memory},
    {"device_peak_mb", FigureGroup::memory},
};

bool more_is_better(FigureGroup group) { return group == FigureGroup::throughput || group == FigureGroup::accuracy; }

// Returns the value of a figure of the list by its name (for lists the largest entry) and sets its unit.
double value_of(const RunFigures& run, const std::string& name, std::string& unit) {
  double out = kUnknown;
  each(run, [&]<class T>(const Figure& figure, T& value) {
    if (figure.name != name) return;
    unit = figure.unit;
    if constexpr (figures::Is<T, double>) out = value;
    if constexpr (figures::Is<T, std::vector<double>>) out = largest(value);
  });
  return out;
}

// Rates of the timed steps of an attempt: all but the first.
std::vector<double> rates_of(const RunRecord& run) {
  std::vector<double> rates;
  const std::vector<StepFigures> steps = read_metrics(run.folder).steps;
  for (std::size_t i = 1; i < steps.size(); ++i)
    if (steps[i].samples_per_s > 0) rates.push_back(steps[i].samples_per_s);
  if (rates.size() < kLeastSteps)
    throw DataError(
        fmt::format("{}: metrics.jsonl has {} of timed steps, but a test of throughput needs at least {}: train "
                    "longer, or compare only other figures (--only counts,memory)",
                    run.folder, counted(static_cast<std::int64_t>(rates.size()), "row"), kLeastSteps));
  return rates;
}

class Comparer {
 public:
  Comparer(const ExperimentPair& pair, const CompareSettings& settings) : pair_(pair), settings_(settings) {}

  ComparedRuns run() {
    ComparedRuns out;
    out.title = title_of_run(pair_.fresh.first());
    out.base_attempts = static_cast<int>(pair_.base.attempts.size());
    out.fresh_attempts = static_cast<int>(pair_.fresh.attempts.size());
    out.single_starts = includes(FigureGroup::throughput) && out.base_attempts == 1 && out.fresh_attempts == 1;
    out.allowed = pair_.allowed;
    if (includes(FigureGroup::throughput)) out.figures = throughput();
    for (const Plain& plain : kPlain)
      if (includes(plain.group) && !meaningless(plain)) add_plain(plain, out.figures);
    return out;
  }

 private:
  double tolerance(FigureGroup group) const { return settings_.tolerance[static_cast<std::size_t>(group)]; }
  bool includes(FigureGroup group) const { return settings_.included[static_cast<std::size_t>(group)]; }

  // Ops of paced runs compute nothing. A loss counts only if the figure before it in the list is unknown.
  bool meaningless(const Plain& plain) const {
    if (plain.group == FigureGroup::counts || plain.group == FigureGroup::memory) return false;
    const RunRecord &base = pair_.base.first(), &fresh = pair_.fresh.first();
    const auto known = [&](double RunFigures::*value) { return !std::isnan(base.*value) && !std::isnan(fresh.*value); };
    if (plain.group == FigureGroup::loss && known(&RunFigures::test_accuracy)) return true;
    if (std::string_view(plain.name) == "train_loss" && known(&RunFigures::test_loss)) return true;
    return base.paced || fresh.paced;
  }

  bool steps_together() const {
    const auto together = [](const RunRecord* run) { return run->steps_together(); };
    return std::ranges::all_of(pair_.base.attempts, together) && std::ranges::all_of(pair_.fresh.attempts, together);
  }

  std::vector<ComparedFigure> throughput() const {
    std::vector<std::vector<double>> base, fresh;
    for (const RunRecord* run : pair_.base.attempts) base.push_back(rates_of(*run));
    for (const RunRecord* run : pair_.fresh.attempts) fresh.push_back(rates_of(*run));
    std::vector<ComparedFigure> out;
    for (const RateOf what : {RateOf::all_steps, RateOf::median_step}) {
      ComparedFigure figure;
      if (what == RateOf::median_step && !steps_together()) continue;
      figure.name = what == RateOf::median_step ? "samples_per_s_median_step" : "samples_per_s";
      figure.unit = "1/s";
      figure.group = FigureGroup::throughput;
      const auto estimates = [&](const std::vector<std::vector<double>>& rates, const Attempts& attempts) {
        std::vector<Estimate> all;
        for (std::size_t i = 0; i < rates.size(); ++i) {
          all.push_back(log_rate(rates[i], what));
          // The rows give the variance of the rate. Its value, over all replicas and their waits, is in the summary.
          if (what == RateOf::all_steps) all.back().value = std::log(attempts[i]->samples_per_s.median);
        }
        return all;
      };
      const auto before = estimates(base, pair_.base.attempts), after = estimates(fresh, pair_.fresh.attempts);
      judge(figure, before, after, true);
      out.push_back(std::move(figure));
    }
    return out;
  }

  // Judges by Welch's test over attempts. `logs`: the estimates are logarithms.
  void judge(ComparedFigure& figure, const std::vector<Estimate>& before, const std::vector<Estimate>& after,
             bool logs) const {
    const Estimate base = combine_attempts(before, after), fresh = combine_attempts(after, before);
    const Shift shift = welch_test(base, fresh, settings_.significance);
    const bool relative = logs || figure.group != FigureGroup::accuracy;
    const auto change = [&](double difference) {
      return logs ? std::expm1(difference) : relative ? difference / std::fabs(base.value) : difference;
    };
    figure.base = logs ? std::exp(base.value) : base.value;
    figure.fresh = logs ? std::exp(fresh.value) : fresh.value;
    figure.change = change(shift.difference);
    const bool tested = base.variance + fresh.variance > 0;
    if (tested) figure.low = change(shift.low), figure.high = change(shift.high);
    if (tested) figure.p = std::min(shift.lower_p, shift.higher_p);
    const double sought = tolerance(figure.group) * (relative && !logs ? std::fabs(base.value) : 1);
    if (tested && sought > 0)
      figure.attempts_needed = attempts_to_find(
          logs ? std::log1p(sought) : sought,
          base.variance * static_cast<double>(before.size()) + fresh.variance * static_cast<double>(after.size()),
          settings_.significance);
    const bool beyond = std::fabs(figure.change) > tolerance(figure.group);
    if (beyond && (!tested || figure.p < settings_.significance))
      figure.verdict = (figure.change > 0) == more_is_better(figure.group) ? Change::better : Change::worse;
  }

  // Counts and memory: compares the smallest value of one side with the largest of the other.
  void judge_ranges(ComparedFigure& figure, const std::vector<double>& before, const std::vector<double>& after) const {
    const auto [base_least, base_most] = std::minmax_element(before.begin(), before.end());
    const auto [fresh_least, fresh_most] = std::minmax_element(after.begin(), after.end());
    const double room = 1 + tolerance(figure.group);
    figure.base = *base_most;
    figure.fresh = *fresh_least;
    if (*fresh_least > *base_most * room)
      figure.verdict = Change::worse;
    else if (*base_least > *fresh_most * room) {
      figure.verdict = Change::better;
      figure.base = *base_least, figure.fresh = *fresh_most;
    }
    figure.change = figure.base == figure.fresh ? 0 : figure.fresh / figure.base - 1;
  }

  void add_plain(const Plain& plain, std::vector<ComparedFigure>& out) const {
    ComparedFigure figure;
    figure.name = plain.name;
    figure.group = plain.group;
    const auto values = [&](const Attempts& attempts) {
      std::vector<double> all;
      for (const RunRecord* run : attempts) all.push_back(value_of(*run, plain.name, figure.unit));
      std::erase_if(all, [](double value) { return std::isnan(value); });
      return all;
    };
    const std::vector<double> before = values(pair_.base.attempts), after = values(pair_.fresh.attempts);
    if (before.empty() && after.empty()) return;
    if (before.empty() || after.empty()) {
      figure.verdict = Change::unknown;
      figure.note = before.empty() ? "BASE has none" : "NEW has none";
    } else if (plain.group == FigureGroup::counts || plain.group == FigureGroup::memory) {
      if (std::max(largest(before), largest(after)) == 0) return;
      judge_ranges(figure, before, after);
    } else {
      const auto estimates = [](const std::vector<double>& from) {
        std::vector<Estimate> all;
        for (const double value : from) all.push_back({value, 0, 0});
        return all;
      };
      judge(figure, estimates(before), estimates(after), false);
    }
    out.push_back(std::move(figure));
  }

  const ExperimentPair& pair_;
  const CompareSettings& settings_;
};

// Returns the attempts that count and names the others in `notes`.
Attempts counted_of(const std::vector<RunRecord>& runs, const char* side, std::vector<std::string>& notes) {
  Attempts out;
  for (const RunRecord& run : runs) {
    const std::string why = why_uncounted(run);
    if (why.empty())
      out.push_back(&run);
    else
      notes.push_back(fmt::format("{}: {} is not counted: {}", side, run.folder, why));
  }
  if (out.empty()) throw DataError(fmt::format("{}: none of {} finished", side, counted(std::ssize(runs), "attempt")));
  return out;
}

std::string commits_of(const Attempts& attempts) {
  std::set<std::string> commits;
  for (const RunRecord* run : attempts) commits.insert(run->provenance.git_hash);
  return fmt::format("{}", fmt::join(commits, ", "));
}

}  // namespace

int Comparison::count(Change verdict) const {
  std::int64_t sum = 0;
  for (const ComparedRuns& one : runs)
    sum += std::count_if(one.figures.begin(), one.figures.end(),
                         [&](const ComparedFigure& figure) { return figure.verdict == verdict; });
  return static_cast<int>(sum);
}

Comparison compare_runs(const std::vector<RunRecord>& base, const std::vector<RunRecord>& fresh,
                        const CompareSettings& settings) {
  Comparison out;
  out.settings = settings;
  std::vector<std::string> left_out;
  const Attempts before = counted_of(base, "BASE", left_out), after = counted_of(fresh, "NEW", left_out);
  out.notes.push_back(fmt::format("BASE was built from {}, NEW from {}", commits_of(before), commits_of(after)));
  out.notes.insert(out.notes.end(), left_out.begin(), left_out.end());
  const PairedExperiments paired = pair_experiments(before, after, settings.allowed);
  for (const std::string& title : paired.unanswered) out.notes.push_back("only NEW has " + title);
  for (const ExperimentPair& pair : paired.pairs) out.runs.push_back(Comparer(pair, settings).run());
  return out;
}

}  // namespace echelon::inline report
