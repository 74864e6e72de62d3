// SPDX-License-Identifier: Apache-2.0
#include "run/warnings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "config/unsteady.hpp"
#include "data/class_mix.hpp"
#include "data/describe.hpp"
#include "data/location.hpp"
#include "job/launch.hpp"
#include "job/shaped_network.hpp"
#include "model/graph.hpp"

namespace echelon::inline run {

std::vector<std::string> warnings_of_config(const Config& config, int ranks, int hosts) {
  std::vector<std::string> warnings;
  const CheckpointConfig& checkpoint = config.checkpoint;
  if (config.data.test.empty()) warnings.emplace_back("no data.test: accuracy will not be reported");
  if (checkpoint.every_steps == 0 && checkpoint.every_minutes == 0 && checkpoint.every_epochs == 0)
    warnings.emplace_back(
        "no regular checkpoints (checkpoint.every_*): a run that crashes starts over; a run that is stopped by a "
        "signal writes one");
  if (config.device.kind == "paced")
    warnings.emplace_back("device.kind = \"paced\" sleeps instead of computing: losses are meaningless");
  if (!config.network.rate.empty())
    warnings.push_back(
        fmt::format("network.rate: messages between hosts are slowed down to {}; times are those of that network",
                    shape_of(config.network).text()));
  if (config.device.kind == "cuda" && slurm_job_without_gpus())
    warnings.emplace_back(
        "device.kind = \"cuda\" in a job that did not request a GPU from Slurm: use sbatch --gpus-per-task=1");
  if (ranks % hosts != 0)
    warnings.push_back(fmt::format("{} not divide evenly over {}",
                                   ranks == 1 ? "1 rank does" : fmt::format("{} ranks do", ranks),
                                   counted(hosts, "host")));
  for (std::string& text : unsteady(config, ranks)) warnings.push_back(std::move(text));
  return warnings;
}

std::vector<std::string> warnings_of_plan(const Config& config, const RunPlan& plan) {
  std::vector<std::string> warnings;
  if (plan.train.cut() > 0)
    warnings.push_back(fmt::format("{} of {} training sequences are truncated to {} steps (data.sequence_length)",
                                   count_text(plan.train.cut()), count_text(plan.train.samples()),
                                   plan.train.length()));
  const SamplePlan::Coverage seen = plan.shards.coverage(0);
  if (seen.never > 0)
    warnings.push_back(fmt::format("{} not seen in an epoch",
                                   seen.never == 1 ? "1 sample is" : count_text(seen.never) + " samples are"));
  if (seen.more > 0 && !plan.shards.rereads())
    warnings.push_back(
        fmt::format("{} seen more than once in an epoch, up to {} times (data.ragged = \"wrap\"{})",
                    seen.more == 1 ? "1 sample is" : count_text(seen.more) + " samples are", seen.most,
                    plan.shards.sharding() == Sharding::file ? "; data.sharding = \"record\" deals them evenly" : ""));
  for (std::string& text : layout_hints(plan.train, config.data.buffer_mb)) warnings.push_back(std::move(text));
  const bool changed = augmentation_of(config.data, config.seed).any() || plan.train.view.any();
  for (std::string& text : slab_hints(plan.train, plan.part.slab, changed)) warnings.push_back(std::move(text));
  for (const std::string& location : {config.data.train, config.data.test})
    for (std::string& text : location_warnings(location)) warnings.push_back(std::move(text));
  for (std::string& text : label_warnings(plan.train, config.data.train)) warnings.push_back(std::move(text));
  if (plan.train.label_sample) {
    const ClassMix mix = class_mix(*plan.train.label_sample, &plan.shards);
    for (std::string& text : mix_warnings(mix, plan.shards, plan.train, config.data))
      warnings.push_back(std::move(text));
  }
  const auto& nodes = plan.graph.nodes();
  const bool normalises =
      std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.layer->kind() == "batch_norm"; });
  const std::vector<std::int64_t>& micro = plan.batch.micro;
  const auto& layers = config.model.layers;
  const bool over_replicas =
      plan.replicas > 1 && (config.model.synchronised_batch_norm ||
                            std::any_of(layers.begin(), layers.end(), [](const auto& l) { return l.synchronised; }));
  if (normalises && !over_replicas && *std::max_element(micro.begin(), micro.end()) == 1)
    warnings.emplace_back(
        "batch_norm has one sample per micro-batch: its statistics are those of one sample (without any variance after "
        "a dense layer), but evaluations use running statistics; use a larger batch, fewer replicas or "
        "model.synchronised_batch_norm");
  return warnings;
}

}  // namespace echelon::inline run
