// The hooks of an attempt, in the order in which the loop calls them.
#include "checkpoint/trained_data.hpp"
#include "run/attempt.hpp"
#include "train/hooks/agreement.hpp"
#include "train/hooks/checkpoint.hpp"
#include "train/hooks/divergence.hpp"
#include "train/hooks/evaluate.hpp"
#include "train/hooks/fault.hpp"
#include "train/hooks/metrics.hpp"
#include "train/hooks/progress.hpp"
#include "train/hooks/status.hpp"

namespace echelon::inline run {

void Attempt::make_hooks() {
  const bool first_rank = slot_.rank == 0;
  if (auto fault = make_fault_hook(slot_.rank, *arenas_, *strategy_)) hooks_.push_back(std::move(fault));
  hooks_.push_back(std::make_unique<AgreementHook>(config_.exchange.verify_every_steps, rank_groups_->mesh(), *arenas_,
                                                   *strategy_, group_));
  hooks_.push_back(std::make_unique<EvaluateHook>(config_, *plan_, *rank_groups_, *arenas_, *strategy_,
                                                  *activation_exchange_, group_, phase_));
  hooks_.push_back(std::make_unique<DivergenceHook>(config_, state_));
  MetricsHook* metrics = nullptr;
  if (first_rank) {
    auto hook = std::make_unique<MetricsHook>(start_.folder.attempt + "/metrics.jsonl", config_.run.log_every_steps);
    metrics = hook.get();
    hooks_.push_back(std::move(hook));
  }
  hooks_.push_back(std::make_unique<CheckpointHook>(
      config_.checkpoint, start_.folder, first_rank, [this](StateVisitor& visitor) { visit_state(visitor); },
      [this] {
        lock_.confirm();
        return gather_for_checkpoint();
      },
      *arenas_, *strategy_, phase_, board_, to_text(trained_data_of(plan_->train)),
      [metrics] {
        if (metrics) metrics->settle();
      }));
  auto statistics = std::make_unique<StatisticsHook>();
  statistics_ = statistics.get();
  hooks_.push_back(std::move(statistics));
  hooks_.push_back(std::make_unique<StatusHook>(board_));
  if (!first_rank) return;
  hooks_.push_back(std::make_unique<ProgressHook>(config_.run, plan_->total_steps, config_.train.epochs,
                                                  strategy_->progress().meets == Progress::Meets::on_call));
}

}  // namespace echelon::inline run
