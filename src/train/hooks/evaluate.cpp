#include "train/hooks/evaluate.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "data/loader.hpp"
#include "job/agree.hpp"
#include "train/set_inputs.hpp"

namespace echelon::inline train {

EvaluateHook::EvaluateHook(const Config& config, const RunPlan& plan, const RankGroups& rank_groups, Arenas& arenas,
                           Strategy& strategy, ActivationExchange& activation_exchange, Group& group, PhaseBoard& phase)
    : config_(config),
      plan_(plan),
      trains_(rank_groups.trains()),
      replica_(rank_groups.replica()),
      has_loss_(rank_groups.has_loss()),
      arenas_(arenas),
      strategy_(strategy),
      activation_exchange_(activation_exchange),
      group_(group),
      phase_(phase) {
  if (!plan_.test) return;
  shards_ = std::make_unique<SamplePlan>(evaluation_plan(*plan_.test, config, plan.replicas));
  if (!takes_part()) return;
  const std::int64_t batch = shards_->batch(replica_);
  program_ = std::make_unique<Program>(plan_.part.graph, arenas_,
                                       ProgramOptions{.batch = batch, .training = false, .dtype = config.device.dtype});
  program_->set_transfer([this](const Transfer& transfer) { activation_exchange_.carry(transfer); });
}

// Every batch's sums have places of their own, so that all are added in the order of batches on any number of ranks.
void EvaluateHook::pass(std::vector<double>& sums) {
  Loader loader(*plan_.test, *shards_, evaluation_loading(config_, arenas_.dtype(), replica_));
  program_->reset_states();
  activation_exchange_.begin(static_cast<int>(shards_->steps_per_epoch()), program_->batch(), false);
  for (std::int64_t step = 0; step < shards_->steps_per_epoch(); ++step) {
    set_inputs(arenas_.device(), *program_, loader.next());
    program_->reset_losses();
    program_->forward({});
    if (!has_loss_) continue;
    const LossSums batch = program_->losses();
    const auto at = static_cast<std::size_t>(step * shards_->replicas() + replica_) * 3;
    sums[at] = batch.loss, sums[at + 1] = batch.correct, sums[at + 2] = batch.weight;
  }
  (void)activation_exchange_.take_waited_s();  // evaluation's time, not the next step's
}

void EvaluateHook::epoch_end(EpochRecord& record) {
  if (!plan_.test) return;
  const std::int64_t every = config_.evaluate.every_epochs;
  if (!record.last && (every == 0 || record.epoch % every != 0)) return;
  phase_.enter(trains_ ? "evaluation" : kStandBy);
  strategy_.drain();
  std::vector<double> sums(static_cast<std::size_t>(shards_->steps_per_epoch() * shards_->replicas()) * 3);
  if (takes_part()) pass(sums);
  group_.sum(sums);
  std::array<double, 3> all{};
  for (std::size_t i = 0; i < sums.size(); ++i) all[i % 3] += sums[i];
  phase_.enter("hooks");
  if (!arenas_.device().computes()) return;  // the time was real, the figures mean nothing
  if (!std::isfinite(all[0]))
    throw CommonError(kExitNumeric, "the loss on the test data is not a finite number: the weights have diverged");
  record.test_loss = all[2] > 0 ? all[0] / all[2] : 0;
  if (plan_.graph.counts_correct()) record.test_accuracy = all[2] > 0 ? all[1] / all[2] : 0;
}

}  // namespace echelon::inline train
