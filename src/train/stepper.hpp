// SPDX-License-Identifier: Apache-2.0
// The step of a rank by its role: a worker trains (step.hpp), a server serves (server_step.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/state.hpp"
#include "checkpoint/run_state.hpp"
#include "device/paced/step_pace.hpp"
#include "exchange/batch_norm_sum.hpp"
#include "exchange/strategy.hpp"
#include "fault/injector.hpp"
#include "job/phase.hpp"
#include "parallel/activation_exchange.hpp"
#include "parallel/rank_groups.hpp"
#include "train/batch_draws.hpp"
#include "train/hooks/hook.hpp"
#include "train/run_plan.hpp"

namespace echelon::inline train {

struct StepResult {
  LossSums losses;  // of this rank
  StepOutcome outcome;
  // The parts of a step on a device that runs behind the host (DeviceTimes), by its clock; else the host's clock
  // counts.
  std::optional<StepTimes> of_device = {};
};

class Stepper {
 public:
  virtual ~Stepper() = default;
  // Calls `on_losses` once, as soon as this rank's losses are known: every rank waits for those of all ranks.
  virtual StepResult run(const StepInfo& info, const std::function<void(const LossSums&)>& on_losses) = 0;
  // After the last step of an attempt that has not failed, before its hooks end.
  virtual void end_run() {}
  // The plan of batches that are drawn or dealt; null if each replica has its shard.
  virtual const DrawPlan* draws() const { return nullptr; }
  // If batches are drawn, called before each step: returns the batch that it trains, and its step of the run; none if
  // no batch remains. Waits until the batch is read.
  struct Drawn {
    Draw draw;
    std::int64_t step = 0;
  };
  virtual std::optional<Drawn> draw() { return {}; }
  // AsynchronousReplicas::come_to_meeting.
  virtual void come_to_meeting() {}
  // True if it computes gradients; a server does not.
  virtual bool trains() const { return true; }
  // Divides the steps from the position `at` on into these batches, by replica; the same call on all ranks. Waits for
  // the first one.
  virtual void share_by(const std::vector<std::int64_t>& batches, const Position& at) { (void)batches, (void)at; }
  // The samples of each replica as they are divided now; `at_first`: before share_by was called.
  virtual const SamplePlan& shards(const SamplePlan& at_first) const { return at_first; }
  // Visits what it carries from step to step.
  virtual void visit_state(StateVisitor&) {}
  // Not none if device.pace_ms paces it.
  virtual std::optional<PaceRecord> pace() const { return {}; }
  // Device::throttled of its device.
  virtual unsigned throttled() const { return 0; }
  // Bytes of training data.
  virtual std::uint64_t bytes_read() const { return 0; }
  virtual std::uint64_t bytes_used() const { return 0; }
  // Bytes of activations that it need not hold because backwards come between forwards, as in 1f1b.
  virtual std::size_t spared_bytes() const { return 0; }
};

// The parts of a stepper. All references outlive it.
struct StepperParts {
  const Config& config;
  const RunPlan& plan;
  const RankGroups& place;
  Arenas& arenas;
  Strategy& strategy;
  const Optimiser& optimiser;
  BatchNormSum& batch_norm_sum;
  ActivationExchange& activation_exchange;
  PhaseBoard& phase;
  Position start;                   // of this replica
  BatchDraws* draws = nullptr;      // null where each replica has its shard
  FaultInjector* faults = nullptr;  // null where the run has none
};
// Makes the stepper of the role of `parts.place`.
std::unique_ptr<Stepper> make_stepper(const StepperParts& parts);

}  // namespace echelon::inline train
