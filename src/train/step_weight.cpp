// SPDX-License-Identifier: Apache-2.0
// The weight of a step whose labels have weights of their own (data/label_weights.hpp).
#include "base/check.hpp"
#include "config/traits/strategies.hpp"
#include "train/step.hpp"

namespace echelon::inline train {

void StepRunner::take_batch(Source& source, const StepInfo& info) {
  p_.phase.enter("data");
  const WatchedSpan span(SpanKind::data);
  if (p_.draws == nullptr) source.batch = &source.batches->at(info.epoch, info.step_in_epoch);
  ECHELON_CHECK_EQ(source.batch->n, p_.plan.batch.accumulation * source.micro_batch, "samples of a batch");
}

// Weights are planned as numbers of labels; those of weighted labels are known when the batches have been read.
// Replicas that meet after the step agree on the sum. Others take their own weight, and that of the whole step by the
// planned share.
StepInfo StepRunner::weighed(const StepInfo& planned) {
  const LabelWeights& weights = p_.plan.train.label_weights;
  std::vector<double> counts(weights.counts());
  for (Source& source : sources_) {
    take_batch(source, planned);
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += source.batch->label_counts[i];
  }
  StepInfo info = planned;
  info.local_weight = weights.sum(counts);
  info.weight = planned.local_weight > 0 ? info.local_weight / planned.local_weight * planned.weight : planned.weight;
  const bool together = p_.strategy.progress().meets != Progress::Meets::when_called && planned.meets &&
                        !strategy_traits(p_.config.exchange.strategy).skips_steps;
  if (together && p_.place.mesh().replicas() > 1) {
    p_.phase.enter("exchange");
    const WatchedSpan span(SpanKind::exchange);
    p_.batch_norm_sum.add(counts);
    info.weight = weights.sum(counts);
  }
  if (info.weight <= 0) info.weight = 1;  // no label counts, and all gradients are 0
  return info;
}

}  // namespace echelon::inline train
