// SPDX-License-Identifier: Apache-2.0
// A step on a rank that only serves (exchange.server.ranks): it has no data and no programs, only the strategy's
// server. If replicas are asynchronous, the loop calls no step of such a rank: its strategy serves beside the loop,
// which attends meetings. The rank has whole arenas, of which it uses the parts that it serves, and is idle while
// workers evaluate. Workers have a separate group for batch norm and times.
#pragma once

#include "exchange/facets.hpp"
#include "job/phase.hpp"
#include "train/stepper.hpp"

namespace echelon::inline train {

class ServerStep final : public Stepper {
 public:
  ServerStep(Strategy& strategy, PhaseBoard& phase) : strategy_(strategy), phase_(phase) {}

  // Returns once the step's updates are done; no loss and no weight enter the step's sums from here.
  StepResult run(const StepInfo& info, const std::function<void(const LossSums&)>& on_losses) override;

  void come_to_meeting() override { join_meeting(strategy_); }
  bool trains() const override { return false; }

 private:
  Strategy& strategy_;
  PhaseBoard& phase_;
};

}  // namespace echelon::inline train
