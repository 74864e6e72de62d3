#include "train/hooks/evaluate.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "data/loader.hpp"
#include "train/agree.hpp"
#include "train/feed.hpp"

namespace echelon {

EvaluateHook::EvaluateHook(const Config& config, const RunPlan& plan, Arenas& arenas, Strategy& strategy, Group& group,
                           PhaseBoard& phase)
    : config_(config), plan_(plan), arenas_(arenas), strategy_(strategy), group_(group), phase_(phase) {
  if (!plan_.test) return;
  shards_ = std::make_unique<ShardPlan>(evaluation_plan(*plan_.test, config, group.size()));
  if (!takes_part()) return;
  const std::int64_t batch = shards_->batch(group.rank());
  program_ = std::make_unique<Program>(plan_.graph, arenas_,
                                       ProgramOptions{.batch = batch, .training = false, .dtype = config.device.dtype});
}

// Every batch's sums have places of their own, so that all are added in the order of batches on any number of ranks.
void EvaluateHook::pass(std::vector<double>& sums) {
  Loader loader(*plan_.test, *shards_, evaluation_loading(config_, arenas_.dtype(), group_.rank()));
  program_->reset_states();
  for (std::int64_t step = 0; step < shards_->steps_per_epoch(); ++step) {
    feed(arenas_.device(), *program_, loader.next());
    program_->reset_losses();
    program_->forward({});
    const LossSums batch = program_->losses();
    const auto at = static_cast<std::size_t>(step * shards_->replicas() + group_.rank()) * 3;
    sums[at] = batch.loss, sums[at + 1] = batch.correct, sums[at + 2] = batch.weight;
  }
}

void EvaluateHook::epoch_end(EpochRecord& record) {
  if (!plan_.test) return;
  const std::int64_t every = config_.evaluate.every_epochs;
  if (!record.last && (every == 0 || record.epoch % every != 0)) return;
  phase_.enter("evaluation");
  strategy_.drain();
  std::vector<double> sums(static_cast<std::size_t>(shards_->steps_per_epoch() * shards_->replicas()) * 3);
  if (takes_part()) pass(sums);
  group_.sum(sums);
  std::array<double, 3> all{};
  for (std::size_t i = 0; i < sums.size(); ++i) all[i % 3] += sums[i];
  phase_.enter("hooks");
  if (!arenas_.device().computes()) return;  // the time was real, the figures mean nothing
  if (!std::isfinite(all[0]))
    throw CommonError(kExitNumeric, "the loss on the test data is not a finite number: the weights have run away");
  record.test_loss = all[2] > 0 ? all[0] / all[2] : 0;
  if (plan_.graph.counts_correct()) record.test_accuracy = all[2] > 0 ? all[1] / all[2] : 0;
}

}  // namespace echelon
