// What a rank does in a step of the loop, by its role: a worker trains (step.hpp), a server serves (server_step.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/state.hpp"
#include "data/draw_plan.hpp"
#include "device/paced/step_pace.hpp"
#include "exchange/strategy.hpp"
#include "train/hooks/hook.hpp"

namespace echelon::inline parallel {
class ActivationExchange;
}

namespace echelon::inline parallel {
class RankGroups;
}

namespace echelon::inline job {
class PhaseBoard;
}

namespace echelon::inline exchange {
class BatchNormSum;
}

namespace echelon::inline checkpoint {
struct Position;
struct RunState;
}  // namespace echelon::inline checkpoint

namespace echelon::inline fault {
class FaultInjector;
}

namespace echelon::inline train {

struct RunPlan;
class BatchDraws;

struct StepResult {
  LossSums losses;  // of this rank
  StepOutcome outcome;
  // The parts of a step on a device that runs behind the host (DeviceTimes), by its clock; else the host's clock
  // counts.
  std::optional<StepTimes> of_device = {};
};

// What a rank does in a step of the loop.
class Stepper {
 public:
  virtual ~Stepper() = default;
  // Calls `on_losses` once, as soon as this rank's losses are known: every rank waits for those of all ranks.
  virtual StepResult run(const StepInfo& info, const std::function<void(const LossSums&)>& on_losses) = 0;
  // After the last step of an attempt that has not failed, before its hooks end.
  virtual void end_run() {}
  // What is drawn or dealt, batch by batch; null where each replica has its shard.
  virtual const DrawPlan* draws() const { return nullptr; }
  // Then, before each step: the batch that it trains, and the step of the run that this is; none where none is left.
  // Waits until it is read.
  struct Drawn {
    Draw draw;
    std::int64_t step = 0;
  };
  virtual std::optional<Drawn> draw() { return {}; }
  // MeetsOnCall::come_to_meeting.
  virtual void come_to_meeting() {}
  // Whether it computes gradients; a server does not.
  virtual bool trains() const { return true; }
  // From the position `at` on, the steps are divided into these batches, by replica; the same call on all ranks. Waits
  // for the first one.
  virtual void share_by(const std::vector<std::int64_t>& batches, const Position& at) { (void)batches, (void)at; }
  // The samples of each replica as they are divided now; `at_first`: before share_by was called.
  virtual const SamplePlan& shards(const SamplePlan& at_first) const { return at_first; }
  // What it carries from step to step.
  virtual void visit_state(StateVisitor&) {}
  // Where device.pace_ms paces it.
  virtual std::optional<PaceRecord> pace() const { return {}; }
  // Device::throttled of where it computes.
  virtual unsigned throttled() const { return 0; }
  // Of training data.
  virtual std::uint64_t bytes_read() const { return 0; }
  virtual std::uint64_t bytes_used() const { return 0; }
  // Of activations that it need not hold because backwards come between forwards, as in 1f1b.
  virtual std::size_t spared_bytes() const { return 0; }
};

// What steppers are made of; all of it outlives them.
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
  const RunState& start;
  BatchDraws* draws = nullptr;      // null where each replica has its shard
  FaultInjector* faults = nullptr;  // null where the run has none
};
// Of the place's role.
std::unique_ptr<Stepper> make_stepper(const StepperParts& parts);

}  // namespace echelon::inline train
