// One rank of a training run with batches from memory: the objects that Attempt builds from a config and shards, the
// production StepRunner (or ServerStep) among them.
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

// Hands a StepRunner the batches that a test makes, in the types of a Loader: reals in the arenas' dtype, tokens,
// labels of classes, lengths and ids in 32-bit integers.
class PlainSource final : public BatchSource {
 public:
  // `dtype`: of the arenas.
  PlainSource(const SampleForm& form, DType dtype) : form_(form), dtype_(dtype) {}
  // What the next call of at() returns, whatever the step; copied.
  void hand(const PlainBatch& batch, std::int64_t step);
  const Batch& at(std::int64_t, std::int64_t) override { return batch_; }

 private:
  using Bytes = std::vector<std::byte>;
  Bytes samples_, labels_, weights_, lengths_, target_, ids_;
  SampleForm form_;
  DType dtype_;
  Batch batch_;
};

// What does not change when a run is resumed.
struct Standing {
  // Collective over the world. `plan_run` of a run without files: `config.parallel` and `batch` say all of it, where
  // batch.micro has an entry for each replica. Ranks beyond the mesh are servers (config.exchange.server.ranks).
  Standing(Engine& world, const Config& config, BatchPlan batch, const Graph& graph);
  bool serves() const { return !rank_groups.trains(); }
  // Over which a strategy exchanges.
  Engine& exchange() { return rank_groups.exchange(); }

  Engine& world;
  RankGroups rank_groups;
  std::optional<RunPlan> plan;
};

class Worker {
 public:
  // `seed` of the weights; `recorded` as in StrategyContext. Starts at step `step` of one long epoch; collective where
  // ranks share a model.
  Worker(Standing& standing, const Config& config, std::unique_ptr<Device> device, std::uint64_t seed,
         const LossScaling& scaling, std::int64_t step = 0, std::vector<LedgerBytes> recorded = {});

  // One step; servers take no batch.
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
  std::unique_ptr<PartNorms> part_norms_;  // null where nothing is split
  Optimiser optimiser_;
  std::unique_ptr<Strategy> strategy_;
  BatchNormSum batch_norm_sum_;
  PhaseBoard phase_;
  PlainSource* source_ = nullptr;  // the runner's
  StepRunner* runner_ = nullptr;   // stepper_; null on servers
  std::unique_ptr<Stepper> stepper_;
};

}  // namespace echelon::verify
