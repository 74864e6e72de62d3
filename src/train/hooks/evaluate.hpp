// Loss and accuracy on the test data, every replica taking its part: sums over ranks, so that the figures are those of
// one rank. Ranks that do not train stand by, however long it
// takes.
#pragma once

#include <memory>

#include "comm/group.hpp"
#include "config/schema.hpp"
#include "device/arenas.hpp"
#include "exchange/strategy.hpp"
#include "job/phase.hpp"
#include "model/program.hpp"
#include "parallel/activation_exchange.hpp"
#include "parallel/rank_groups.hpp"
#include "train/hooks/hook.hpp"
#include "train/run_plan.hpp"

namespace echelon::inline train {

class EvaluateHook final : public Hook {
 public:
  // `group`: all ranks.
  EvaluateHook(const Config& config, const RunPlan& plan, const RankGroups& rank_groups, Arenas& arenas,
               Strategy& strategy, ActivationExchange& activation_exchange, Group& group, PhaseBoard& phase);

  void epoch_end(EpochRecord& record) override;
  std::size_t activation_bytes() const { return program_ ? program_->activation_bytes() : 0; }

 private:
  void pass(std::vector<double>& sums);
  // No more replicas do than there are samples.
  bool takes_part() const { return trains_ && replica_ < shards_->replicas(); }

  const Config& config_;
  const RunPlan& plan_;
  const bool trains_;
  const int replica_;
  const bool has_loss_;
  Arenas& arenas_;
  Strategy& strategy_;
  ActivationExchange& activation_exchange_;
  Group& group_;
  PhaseBoard& phase_;
  std::unique_ptr<SamplePlan> shards_;
  std::unique_ptr<Program> program_;
};

}  // namespace echelon::inline train
