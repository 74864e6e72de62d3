// SPDX-License-Identifier: Apache-2.0
#include "report/loss_budget.hpp"

#include <algorithm>
#include <cmath>

namespace echelon::inline report {
namespace {

// Mean seconds of a rank per sample of the whole run; times the number of ranks they are rank-seconds.
struct SampleSeconds {
  double compute, exchange, skew, codec, input, optimiser, split, evaluation, checkpoint, hooks, other, start_up;
  explicit SampleSeconds(const ScalingRow& row) {
    const StepTimes& t = row.time_split_s;
    const double n = row.counted_samples(), steps = row.counted_steps();
    compute = (t.forward_s + t.backward_s) / n;
    input = t.data_wait_s / n;
    optimiser = t.optimiser_s / n;
    split = t.split_s / n;
    evaluation = t.evaluation_s / n;
    checkpoint = t.checkpoint_s / n;
    hooks = t.hooks_s / n;
    other = t.other_s() / n;
    start_up = start_up_s(row, t.total_s / steps) * row.attempts / n;
    const double waits = std::isnan(row.skew_wait_s) ? 0 : std::min(row.skew_wait_s * steps, t.exchange_s);
    const double busy_s = row.exchange_exposed_s + row.exchange_hidden_s;  // unknown or 0: nothing was coded
    const double coding = row.codec_s > 0 ? std::min(1.0, row.codec_s / std::max(busy_s, row.codec_s)) : 0;
    skew = waits / n;
    codec = coding * (t.exchange_s - waits) / n;
    exchange = t.exchange_s / n - skew - codec;
  }
  double training() const { return compute + exchange + skew + codec + input + optimiser + split + other; }
  double whole() const { return training() + evaluation + checkpoint + hooks + start_up; }
};

}  // namespace

double start_up_s(const RunFigures& run, double step_s) {
  if (!std::isnan(run.step_s.median)) step_s = run.step_s.median;
  const double start_s = run.start_to_first_step_s > step_s ? run.start_to_first_step_s - step_s : 0;
  return start_s + (run.warmup_s > 0 ? run.warmup_s : 0);
}

LossBudget loss_budget(const ScalingRow& row, const ScalingRow& baseline) {
  LossBudget budget;
  if (!row.has_split || !baseline.has_split || !(row.counted_samples() > 0) || !(baseline.counted_samples() > 0))
    return budget;
  const SampleSeconds now(row), base(baseline);
  const double fair = static_cast<double>(std::max(1, baseline.ranks)) / std::max(1, row.ranks), whole = now.whole();
  if (!(whole > 0)) return budget;
  const auto lost = [&](double seconds, double base_s) { return std::max(0.0, seconds - fair * base_s) / whole; };
  budget.micro_batch = lost(now.compute, base.compute);
  budget.exchange = lost(now.exchange, base.exchange);
  budget.codec = lost(now.codec, base.codec);
  budget.skew = lost(now.skew, base.skew);
  budget.input = lost(now.input, base.input);
  budget.optimiser = lost(now.optimiser, base.optimiser);
  budget.split = lost(now.split, base.split);
  budget.evaluation = now.evaluation / whole;
  budget.checkpoint = now.checkpoint / whole;
  budget.hooks = now.hooks / whole;
  budget.start_up = now.start_up / whole;
  budget.other = lost(now.other, base.other);
  budget.achieved = std::min(1.0, fair * base.training() / whole);
  double losses = 0;
  for (const BudgetPart& part : kBudgetParts)
    if (part.share != &LossBudget::achieved) losses += budget.*part.share;
  for (const BudgetPart& part : kBudgetParts)
    if (part.share != &LossBudget::achieved && losses > 0) budget.*part.share *= (1 - budget.achieved) / losses;
  return budget;
}

}  // namespace echelon::inline report
