// SPDX-License-Identifier: Apache-2.0
#include "run/rate.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace echelon::inline run {
namespace {

// Returns the share of a worker's updates that servers applied.
double applied_share(const std::vector<StalenessTally>& staleness, int worker) {
  if (static_cast<std::size_t>(worker) >= staleness.size()) return 1;
  const StalenessTally& tally = staleness[static_cast<std::size_t>(worker)];
  const auto applied = static_cast<double>(tally.applied), dropped = static_cast<double>(tally.dropped);
  return dropped > 0 ? applied / (applied + dropped) : 1;
}

// Returns the time for which evaluations or checkpoints held training up. Replicas that step together all wait for the
// one that is busy longest. Others train on until all have come: nobody trains while the last to come is busy.
double held_up_s(const std::vector<double>& by_rank, bool asynchronous) {
  const auto [least, most] = std::minmax_element(by_rank.begin(), by_rank.end());
  return asynchronous ? *least : *most;
}

}  // namespace

void take_rate(const Ready& ready, Group& workers, const std::vector<StalenessTally>& staleness, RunFigures& run) {
  const StatisticsHook& statistics = ready.statistics;
  const Progress progress = ready.built.strategy->progress();
  const Mesh& mesh = ready.placed.groups.mesh();
  const bool counts = mesh.index_in_group(mesh.coord(workers.rank())) == 0;  // once for each replica
  const std::array ends = {statistics.warm_s(), statistics.rate().last_s()};
  const std::vector<double> all = workers.gather(ends);
  double from_s = all[0], to_s = 0;
  for (std::size_t rank = 0; 2 * rank < all.size(); ++rank) {
    from_s = std::min(from_s, all[2 * rank]);
    to_s = std::max(to_s, all[2 * rank + 1]);
  }
  if (!(from_s < to_s)) from_s = 0;  // nobody has trained after the warm-up
  RateRecord::Share own = statistics.rate().between(from_s, to_s);
  const double share = counts ? applied_share(staleness, workers.rank()) : 0;
  own.samples *= share, own.tokens *= share;
  std::array sums = {own.samples, own.tokens, share * statistics.samples_in_sums()};
  workers.sum(sums);
  run.rate_samples = sums[0];
  run.samples_trained = sums[2];
  const bool asynchronous = progress.meets == Progress::Meets::when_called;
  run.evaluation_s = held_up_s(workers.gather(own.evaluation_s), asynchronous);
  run.checkpoint_s = held_up_s(workers.gather(own.checkpoint_s), asynchronous);
  run.rate_s = to_s - from_s - run.evaluation_s - run.checkpoint_s;
  if (!(run.rate_s > 0)) run.rate_s = std::max(0.0, to_s - from_s);  // a few steps, beside which others evaluated
  const auto rate = [&](double amount) { return run.rate_s > 0 ? amount / run.rate_s : 0; };
  const auto with_spread = [&](double value) {
    Quartiles out{.median = value};
    if (progress.meets != Progress::Meets::every_step || !(run.step_s.p25 > 0)) return out;
    out.p25 = value * run.step_s.median / run.step_s.p75;
    out.p75 = value * run.step_s.median / run.step_s.p25;
    return out;
  };
  run.samples_per_s_overall = rate(sums[0]);
  run.samples_per_s = with_spread(run.samples_per_s_overall);
  if (ready.agreed.plan.per_token()) run.tokens_per_s = with_spread(rate(sums[1]));
}

}  // namespace echelon::inline run
