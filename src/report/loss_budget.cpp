#include "report/loss_budget.hpp"

#include <algorithm>
#include <cmath>

namespace echelon::inline report {
namespace {

double samples_of_rank(const ScalingRow& row) { return static_cast<double>(row.global_batch) / std::max(1, row.ranks); }

// Seconds of a step.
struct StepSeconds {
  double compute, exchange, input, optimiser, split, evaluation, checkpoint, hooks, other, whole;
  explicit StepSeconds(const ScalingRow& row) {
    const StepTimes& t = row.time_split_s;
    const double n = row.counted_steps();
    compute = (t.forward_s + t.backward_s) / n;
    exchange = t.exchange_s / n;
    input = t.data_wait_s / n;
    optimiser = t.optimiser_s / n;
    split = t.split_s / n;
    evaluation = t.evaluation_s / n;
    checkpoint = t.checkpoint_s / n;
    hooks = t.hooks_s / n;
    other = t.other_s() / n;
    whole = t.total_s / n;
  }
};

}  // namespace

double start_up_s(const RunFigures& run, double step_s) {
  if (!std::isnan(run.step_s.median)) step_s = run.step_s.median;
  const double start_s = run.start_to_first_step_s > step_s ? run.start_to_first_step_s - step_s : 0;
  return start_s + (run.warmup_s > 0 ? run.warmup_s : 0);
}

LossBudget loss_budget(const ScalingRow& row, const ScalingRow& baseline) {
  LossBudget budget;
  if (!row.has_split || !baseline.has_split || baseline.global_batch == 0) return budget;
  const StepSeconds now(row), base(baseline);
  const double fair = samples_of_rank(row) / samples_of_rank(baseline);
  const double whole = now.whole + start_up_s(row, now.whole) * row.attempts / row.counted_steps();  // of a step
  const double skew = std::isnan(row.skew_wait_s) ? 0 : std::min(row.skew_wait_s, now.exchange);
  const double busy_s = row.exchange_exposed_s + row.exchange_hidden_s;  // unknown, or 0: nothing was coded
  const double coding = row.codec_s > 0 ? std::min(1.0, row.codec_s / std::max(busy_s, row.codec_s)) : 0;
  const double codec = coding * (now.exchange - skew);
  const auto lost = [&](double seconds, double base_s) { return (seconds - fair * base_s) / whole; };
  budget.achieved = fair * (base.whole - base.evaluation - base.checkpoint - base.hooks) / whole;
  budget.micro_batch = lost(now.compute, base.compute);
  budget.exchange = lost(now.exchange - skew - codec, base.exchange);
  budget.codec = codec / whole;
  budget.skew = skew / whole;
  budget.input = lost(now.input, base.input);
  budget.optimiser = lost(now.optimiser, base.optimiser);
  budget.split = lost(now.split, base.split);
  budget.evaluation = now.evaluation / whole;
  budget.checkpoint = now.checkpoint / whole;
  budget.hooks = now.hooks / whole;
  budget.start_up = (whole - now.whole) / whole;
  budget.other = lost(now.other, base.other);
  return budget;
}

}  // namespace echelon::inline report
