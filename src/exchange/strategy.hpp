// How replicas combine what they learned: one strategy a run, one file a strategy.
//
// The loop, once a step, on a worker:
//   begin_step(info)             the step's number, learning rate and weight
//   wait_parameters(range)       from inside forward, before a layer reads its weights
//   gradient_ready(range)        from inside the last micro-batch's backward, in the order gradients are finished
//   end_step() -> outcome        returns when the loop may start the next step
// and at the end of an epoch, before evaluation or a checkpoint: drain(), after which the weights in the arenas are
// this replica's settled view and nothing is in flight; the time that it takes is its caller's, in no outcome.
//
// A rank whose role is not to train (config/roles.hpp) calls begin_step and end_step alone, beside the workers' steps,
// and drains like them.
//
// Gradients arrive divided by `divisor` already (PassScalars::loss_scale), so strategies sum. The strategy, not the
// loop, calls the optimiser; where that waits (a clipped norm, a scaled loss), after all gradients are there.
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
  std::int64_t step = 0;  // updates before this one, over the whole run
  std::int64_t epoch = 0;
  double learning_rate = 0;
  double weight = 0;        // samples of the step over all replicas (W)
  double local_weight = 0;  // of this replica
  std::int64_t step_in_epoch = 0;
  bool meets = true;  // all ranks stand together after this step (Progress)
};

// What a codec made of a replica's gradients in a step.
struct CodecRecord {
  double bytes_before = 0;   // of all values that this replica encoded; 0: nothing was
  double bytes_after = 0;    // of their messages
  bool lossy = false;        // what follows means something
  double density = 1;        // fraction of the values that was sent
  double tau = 0;            // the threshold that chose them, mean over buckets; 0: none did
  double seconds = 0;        // encoding, and decoding what others sent; on the host
  double residual_norm = 0;  // norm of the residual of this replica
};

// Squared norms of a step's gradients, where StrategyContext::noise_scale asks for them. Of this replica's mean over
// its own samples, and of the mean over the samples of all; with the inverse of how many samples each is of.
struct GradientSquares {
  double own = 0, own_inverse = 0;
  double mean = 0, mean_inverse = 0;
};

struct StepOutcome {
  std::int64_t next_step = 0;  // that this replica joins; more than one on: it came too late for those between
  bool contributed = true;     // this replica's gradient entered the update
  double exchange_wait_s = 0;  // compute thread blocked on tickets since the last outcome: what is exposed
  double exchange_busy_s = 0;  // from start to finish, of the buckets that arrived since: exposed and hidden together
  double optimiser_s = 0;      // since the last outcome
  double in_forward_s = 0;     // the part of both that passed inside wait_parameters
  WireCounters wire;           // sent by this rank for what arrived since the last outcome
  double gradient_norm = -1;   // over all weights, before clipping; -1: not measured
  double loss_scale = 1;       // of this step's backward
  bool skipped = false;        // the gradients were not finite: no weight changed, the scale is smaller from now on
  bool give_up = false;        // likewise, and no smaller scale would help
  CodecRecord codec;           // of what arrived since the last outcome
  // Of this replica's weights before they were averaged in this step: |x - mean| / |mean|, running statistics left out;
  // -1: they were not averaged.
  double drift = -1;
  GradientSquares squares = {};
};

// All calls are made by the rank's compute thread. Those that wait (wait_parameters, end_step, drain, gather_state)
// drive the engine meanwhile and throw what ended it: EnvironmentError of the transport, or the error of a protocol.
// Ranges are elements of the arenas, [begin, end). What only some strategies do is in facets.hpp.
class Strategy {
 public:
  virtual ~Strategy() = default;
  // The same on all ranks and during the whole run.
  virtual Progress progress() const { return {}; }
  // Never waits for another rank. A failed check (exit 1) where the step before has not ended.
  virtual void begin_step(const StepInfo& info) = 0;
  // Returns once the weights of the range are those that this step's forward is to read.
  virtual void wait_parameters(ArenaRange range) = 0;
  // What this replica's gradients of the step are divided by, > 0: the weight of the whole step where they are summed
  // over replicas; its own weight where it takes steps of its own.
  virtual double divisor(const StepInfo& info) const { return info.weight; }
  // The range's gradients, summed over this replica's micro-batches and divided by `divisor`, are final; with a device
  // of its own, once its queue has passed. Ranges of a step cover the arenas once, in any order. Never waits for
  // another rank.
  virtual void gradient_ready(ArenaRange range) = 0;
  // A failed check where gradients are missing. What still travels arrives beside the next step.
  virtual StepOutcome end_step() = 0;
  // Collective where ranks meet. Afterwards nothing is in flight on this rank.
  virtual void drain() = 0;
  // Collective, drained: brings to every worker what lies on other ranks of the optimiser's states and of what
  // visit_state shows. Before a checkpoint.
  virtual void gather_state() {}
  // What must be saved beside weights and optimiser states, by name: residuals, thresholds, exact weights. Drained.
  virtual void visit_state(StateVisitor& visitor) = 0;
  // Messages and bytes sent by this rank for all that has arrived so far.
  virtual WireCounters wire() const = 0;
  // Bytes that all ranks together send in one step according to the price list; NaN where they depend on the values.
  virtual double formula_bytes_per_step() const = 0;
  // "ring all-reduce, 3 buckets of 4.00 MiB", for the run banner.
  virtual std::string describe() const = 0;
};

struct StrategyContext {
  Arenas& arenas;
  Optimiser& optimiser;
  Engine& engine;
  int first_channel = 0;     // channels from here on belong to the strategy
  std::uint64_t seed = 0;    // of the run
  std::string part = {};     // behind the names of what is neither of a tensor nor equal in all parts of a split model
  Role role = Role::worker;  // of this rank
  std::int64_t steps_per_epoch = 1;
  // By bucket: the order in which the servers on this rank are to take up what comes; empty: as it comes.
  std::vector<std::vector<std::uint8_t>> recorded = {};
  bool may_lose_workers = false;  // Rescues::rescue may be called (run.on_lost_worker = "continue")
  bool noise_scale = false;       // StepOutcome::squares are asked for
};

std::vector<std::string> strategy_names();
// Throws ConfigError with the nearest name for an unknown strategy.
std::unique_ptr<Strategy> make_strategy(const ExchangeConfig& config, const StrategyContext& context);

// Every rank gets rank 0's weights (all ranks call it).
void broadcast_weights(Arenas& arenas, Engine& engine, int channel);

}  // namespace echelon::inline exchange
