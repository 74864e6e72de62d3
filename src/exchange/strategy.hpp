// SPDX-License-Identifier: Apache-2.0
// How replicas combine what they learned. A run has one strategy; each strategy has its own file or folder.
//
// The loop calls, once per step, on a worker:
//   begin_step(info)             the step's number, learning rate and weight
//   wait_parameters(range)       inside forward, before a layer reads its weights
//   gradient_ready(range)        inside the backward of the last micro-batch, in the order gradients are finished
//   end_step() -> outcome        returns when the loop may start the next step
// At the end of an epoch, and before evaluation or a checkpoint, it calls drain(). The weights in the arenas are then
// this replica's settled weights, and nothing is in flight. No outcome contains the time that drain() takes: the caller
// counts it.
//
// A rank that does not train (config/roles.hpp) calls only begin_step and end_step, in the same steps as the workers,
// and drains as they do.
//
// Gradients are already divided by `divisor` when they arrive (PassScalars::loss_scale), so that strategies only add
// them. The strategy, not the loop, calls the optimiser. If the optimiser waits (a clipped norm, a scaled loss), the
// strategy calls it after all gradients have arrived.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/state.hpp"
#include "comm/engine.hpp"
#include "config/roles.hpp"
#include "config/schema.hpp"
#include "device/arenas.hpp"
#include "exchange/progress.hpp"
#include "optim/optimiser.hpp"

namespace echelon::inline exchange {

struct StepInfo {
  std::int64_t step = 0;  // number of earlier updates in the whole run
  std::int64_t epoch = 0;
  double learning_rate = 0;
  double weight = 0;        // number of samples of the step over all replicas (W)
  double local_weight = 0;  // number of samples of this replica
  std::int64_t step_in_epoch = 0;
  bool meets = true;  // all ranks meet after this step (Progress)
};

// Figures of a codec for the gradients of one replica in one step.
struct CodecRecord {
  double bytes_before = 0;   // of all values that this replica encoded; 0: it encoded none
  double bytes_after = 0;    // of the messages that carry them
  bool lossy = false;        // the fields below are meaningful
  double density = 1;        // fraction of the values that was sent
  double tau = 0;            // the threshold that selected them, mean over buckets; 0: there is none
  double seconds = 0;        // host time for encoding own values and decoding those of others
  double residual_norm = 0;  // L2 norm of this replica's residual
};

// Squared L2 norms of a step's gradients, measured if StrategyContext::noise_scale asks for them: `own` is that of this
// replica's mean gradient over its own samples, `mean` that of the mean over the samples of all replicas. The inverses
// are 1 / the number of those samples.
struct GradientSquares {
  double own = 0, own_inverse = 0;
  double mean = 0, mean_inverse = 0;
};

struct StepOutcome {
  std::int64_t next_step = 0;  // the next step that this replica takes part in; it was too late for skipped ones
  bool contributed = true;     // this replica's gradient entered the update
  double exchange_wait_s = 0;  // time that the compute thread was blocked on tickets since the last outcome
  double exchange_busy_s = 0;  // from the start of the first bucket that arrived since to the end of the last
  double optimiser_s = 0;      // since the last outcome
  WireCounters wire;           // traffic that this rank sent for buckets that arrived since the last outcome
  double gradient_norm = -1;   // L2 norm over all gradients before clipping; -1: not measured
  double loss_scale = 1;       // of this step's backward
  bool skipped = false;        // the gradients were not finite: no weight changed, and the loss scale is reduced
  bool give_up = false;        // as skipped, and a smaller scale would not help
  CodecRecord codec;           // for buckets that arrived since the last outcome
  // |x - mean| / |mean| of this replica's weights x before they were averaged in this step, without running statistics;
  // -1: they were not averaged.
  double drift = -1;
  GradientSquares squares = {};
};

// The rank's compute thread makes all calls. Those that wait (wait_parameters, end_step, drain, gather_state) drive the
// engine meanwhile, and throw the error that ended it: EnvironmentError of the transport, or the error of a protocol.
// Ranges are elements of the arenas, [begin, end). facets.hpp has the interfaces that only some strategies implement.
class Strategy {
 public:
  virtual ~Strategy() = default;
  // Constant during the run, and equal on all ranks.
  virtual Progress progress() const { return {}; }
  // Never waits for another rank. A check fails (exit 1) if the step before has not ended.
  virtual void begin_step(const StepInfo& info) = 0;
  // Returns once the weights of the range are those that this step's forward must read.
  virtual void wait_parameters(ArenaRange range) = 0;
  // The divisor, > 0, of this replica's gradients of the step: the weight of the whole step if gradients are summed
  // over replicas, its own weight if the replica takes separate steps.
  virtual double divisor(const StepInfo& info) const { return info.weight; }
  // Announces that the gradients of the range, summed over this replica's micro-batches and divided by `divisor`, are
  // final; on a device with a queue, once that queue has passed. The ranges of a step cover the arenas once, in any
  // order. Never waits for another rank.
  virtual void gradient_ready(ArenaRange range) = 0;
  // A check fails if gradients are missing. Buckets still in flight arrive during the next step.
  virtual StepOutcome end_step() = 0;
  // Collective if the ranks meet. Afterwards nothing is in flight on this rank.
  virtual void drain() = 0;
  // Collective, after drain, before a checkpoint. Brings to every worker the optimiser states, and the tensors of
  // visit_state, that are on other ranks.
  virtual void gather_state() {}
  // Visits what must be saved in addition to weights and optimiser states, by name: residuals, thresholds, exact
  // weights. Must be called after drain.
  virtual void visit_state(StateVisitor& visitor) = 0;
  // The messages and bytes that this rank sent for everything that has arrived so far.
  virtual WireCounters wire() const = 0;
  // The bytes that all ranks together send in one step according to the price list; NaN if they depend on the values.
  virtual double formula_bytes_per_step() const = 0;
  // Returns the text of the run banner: "ring all-reduce, 3 buckets of 4.00 MiB".
  virtual std::string describe() const = 0;
};

struct StrategyContext {
  Arenas& arenas;
  Optimiser& optimiser;
  Engine& engine;
  int first_channel = 0;     // the strategy may use the channels from here on
  std::uint64_t seed = 0;    // of the run
  std::string part = {};     // name suffix for non-tensor state that differs between parts of a split model
  Role role = Role::worker;  // of this rank
  std::int64_t steps_per_epoch = 1;
  // By bucket: the recorded order in which the servers on this rank must process messages; empty: the order of arrival.
  std::vector<std::vector<std::uint8_t>> recorded = {};
  bool may_lose_workers = false;  // Rescues::rescue may be called (run.on_lost_worker = "continue")
  bool noise_scale = false;       // the loop reads StepOutcome::squares
};

std::vector<std::string> strategy_names();
// Throws ConfigError with the nearest name for an unknown strategy.
std::unique_ptr<Strategy> make_strategy(const ExchangeConfig& config, const StrategyContext& context);

// Every rank gets rank 0's weights. Collective; blocking.
void broadcast_weights(Arenas& arenas, Engine& engine, int channel);

}  // namespace echelon::inline exchange
