// SPDX-License-Identifier: Apache-2.0
// The weight of a step whose labels have weights of their own (data/label_weights.hpp).
#include <algorithm>

#include "base/check.hpp"
#include "comm/group.hpp"
#include "config/traits/strategies.hpp"
#include "train/step.hpp"

namespace echelon::inline train {
namespace {

constexpr int kLabelsChannel = 0;  // of the spatial shards of a stage, which use channels from 1 on for activations

}  // namespace

// The sum over the labels that this rank reads, `labels` of a sample.
double StepRunner::own_weight_of(int micro, std::int64_t labels) const {
  const auto& [source, first] = micros_[static_cast<std::size_t>(micro)];
  return with_float(p_.arenas.dtype(), [&]<class T>(T) {
    const T* weights = static_cast<const T*>(source->batch->weights) + first * labels;
    double sum = 0;
    for (std::int64_t i = 0; i < source->micro_batch * labels; ++i) sum += static_cast<double>(weights[i]);
    return sum;
  });
}

// The shape of the labels that a sample has.
const Shape& StepRunner::label_shape(const Batch& batch) const {
  const Graph& whole = p_.plan.whole_for(p_.plan.shards.length(batch.epoch, batch.step));
  return whole.values()[static_cast<std::size_t>(whole.find("weights"))].shape;
}

// The labels of a sample weigh alike unless classes have weights or some are ignored.
double StepRunner::weight_of(int micro) const {
  if (!micro_weights_.empty()) return micro_weights_[static_cast<std::size_t>(micro)];
  const Shape& all = label_shape(*micros_[static_cast<std::size_t>(micro)].source->batch);
  const std::int64_t labels = p_.plan.part.slab.labels.shape_of(all).elems();
  return own_weight_of(micro, labels) * static_cast<double>(all.elems()) / static_cast<double>(labels);
}

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
  if (const SlabRange& part = p_.plan.part.slab.labels; part.any()) {
    const auto first = static_cast<std::ptrdiff_t>(counts.size());
    const std::int64_t labels = part.shape_of(label_shape(*sources_.front().batch)).elems();
    for (int micro = 0; micro < std::ssize(micros_); ++micro) counts.push_back(own_weight_of(micro, labels));
    Group(p_.place.spatial_shards(), kLabelsChannel).sum(counts);
    micro_weights_.assign(counts.begin() + first, counts.end());
    counts.resize(static_cast<std::size_t>(first));
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
