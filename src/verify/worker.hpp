// SPDX-License-Identifier: Apache-2.0
// One rank of a training run with batches from memory: the objects that Attempt builds from a config and shards,
// including the production StepRunner (or ServerStep).
#pragma once

#include <memory>
#include <optional>

#include "checkpoint/run_state.hpp"
#include "comm/engine.hpp"
#include "config/schema.hpp"
#include "exchange/batch_norm_sum.hpp"
#include "exchange/part_norms.hpp"
#include "exchange/strategy.hpp"
#include "job/phase.hpp"
#include "parallel/activation_exchange.hpp"
#include "parallel/rank_groups.hpp"
#include "train/run_plan.hpp"
#include "train/step.hpp"
#include "verify/trainer.hpp"

namespace echelon::verify {

// Passes the batches that a test makes to a StepRunner, in the types of a Loader: reals in the arenas' dtype; tokens,
// labels of classes, lengths and ids as 32-bit integers.
class PlainSource final : public BatchSource {
 public:
  // `dtype`: that of the arenas; `slab`: what the rank takes of each sample and label.
  PlainSource(const SampleForm& form, DType dtype, const Slab& slab) : form_(form), dtype_(dtype), slab_(slab) {}
  // Sets the batch that the next call of at() returns, whatever the step; copies it.
  void hand(const PlainBatch& batch, std::int64_t step);
  const Batch& at(std::int64_t, std::int64_t) override { return batch_; }

 private:
  using Bytes = std::vector<std::byte>;
  Bytes samples_, labels_, weights_, lengths_, target_, ids_;
  SampleForm form_;
  DType dtype_;
  Slab slab_;
  Batch batch_;
};

// The objects that survive when a run is resumed.
struct Standing {
  // Collective over the world. Like `plan_run` for a run without files: `config.parallel` and `batch` determine it;
  // batch.micro has one entry per replica. Ranks beyond the mesh are servers (config.exchange.server.ranks).
  Standing(Engine& world, const Config& config, BatchPlan batch, const Graph& graph);
  bool serves() const { return !rank_groups.trains(); }
  // The engine over which a strategy exchanges.
  Engine& exchange() { return rank_groups.exchange(); }

  Engine& world;
  RankGroups rank_groups;
  std::optional<RunPlan> plan;
};

class Worker {
 public:
  // `seed`: for the weights. `recorded`: as in StrategyContext. Starts at step `step` of a single long epoch.
  // Collective if ranks share a model.
  Worker(Standing& standing, const Config& config, std::unique_ptr<Device> device, std::uint64_t seed,
         const LossScaling& scaling, std::int64_t step = 0, std::vector<LedgerBytes> recorded = {});

  // Runs one step; servers take no batch.
  StepResult run(const StepInfo& info, const PlainBatch& batch);
  void visit_state(StateVisitor& visitor);

  Device& device() { return *device_; }
  Arenas& arenas() { return arenas_; }
  Strategy& strategy() { return *strategy_; }
  Optimiser& optimiser() { return optimiser_; }
  ActivationExchange& activation_exchange() { return activation_exchange_; }
  StepRunner& runner() { return *runner_; }
  std::vector<double> weights() { return fetch(*device_, arenas_.weights_at(0), arenas_.elems(), arenas_.dtype()); }
  std::vector<double> gradients() { return fetch(*device_, arenas_.gradients_at(0), arenas_.elems(), arenas_.dtype()); }

 private:
  std::unique_ptr<Device> device_;
  ActivationExchange activation_exchange_;
  Arenas arenas_;
  std::unique_ptr<PartNorms> part_norms_;  // null if nothing is split
  Optimiser optimiser_;
  std::unique_ptr<Strategy> strategy_;
  BatchNormSum batch_norm_sum_;
  PhaseBoard phase_;
  PlainSource* source_ = nullptr;  // owned by the runner
  StepRunner* runner_ = nullptr;   // owned by stepper_; null on servers
  std::unique_ptr<Stepper> stepper_;
};

}  // namespace echelon::verify
