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

LossSums EvaluateHook::pass() {
  Loader loader(*plan_.test, *shards_, evaluation_loading(config_, arenas_.dtype(), group_.rank()));
  program_->reset_losses();
  program_->reset_states();
  for (std::int64_t step = 0; step < shards_->steps_per_epoch(); ++step) {
    feed(arenas_.device(), *program_, loader.next());
    program_->forward({});
  }
  return program_->losses();
}

void EvaluateHook::epoch_end(EpochRecord& record) {
  if (!plan_.test) return;
  const std::int64_t every = config_.evaluate.every_epochs;
  if (!record.last && (every == 0 || record.epoch % every != 0)) return;
  phase_.enter("evaluation");
  strategy_.drain();
  LossSums sums;
  if (takes_part()) sums = pass();
  std::array<double, 3> all = {sums.loss, sums.correct, sums.weight};
  group_.sum(all);
  phase_.enter("hooks");
  if (!arenas_.device().computes()) return;  // the time was real, the figures mean nothing
  if (!std::isfinite(all[0]))
    throw CommonError(kExitNumeric, "the loss on the test data is not a finite number: the weights have run away");
  record.test_loss = all[2] > 0 ? all[0] / all[2] : 0;
  if (plan_.graph.counts_correct()) record.test_accuracy = all[2] > 0 ? all[1] / all[2] : 0;
}

}  // namespace echelon
