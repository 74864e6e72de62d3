// SPDX-License-Identifier: Apache-2.0
// The optimiser of a rank: one rule, its states in separate arenas, and the scalars of each step. The formulas of the
// rules are in device/update_rules/, one file each with its paper. The rank's compute thread makes all calls.
//
// A strategy calls it, not the training loop: `apply` for every range whose summed gradient is complete (a server calls
// it for the ranges that it owns). In a range, parameters of kind `statistic` (running means of batch norm) use the
// running-average rule whatever the rule of the optimiser is.
//
// Norms. With `clip_norm` a strategy waits for every gradient, adds up `measure` over all ranges and calls `clip`
// before the first `apply` of the step. LARS and LAMB measure each parameter inside `apply`, whose ranges are then
// whole parameters; parameters without weight decay (biases, scales and shifts of norms) have a ratio of 1. The ratios,
// with w and g of one parameter and d the direction of LAMB with its weight decay:
//   LARS   trust_coefficient |w| / (|g| + weight_decay |w|)     You, Gitman, Ginsburg 2017
//   LAMB   |w| / |d|                                            You et al. 2020
// and 1 if a norm is 0 or not finite. All norms are sums in double in an order that depends only on sizes, so that
// replicas with the same gradients take the same step. A scaled loss (optim/loss_scale.hpp) is divided out of the
// gradient in the pass of the rule, beside clipping; statistics are not scaled. A skipped step does not count as an
// update in the bias correction of moments.
//
// Split models. `measure` counts a parameter that several ranks hold whole on only one of them (optim/part_sums.hpp);
// `clip` and `accept` add over the ranks of the model: collective, one message of one value per step. LARS and LAMB add
// the sums of slices over the ranks that hold them, in one message: with slices to measure, the optimiser waits for
// every gradient, and `apply` takes the whole arena.
//
// Parts of the arenas (`serve`). If several ranks each step on parts of the parameters, `accept` and `clip` add over
// them, and LARS and LAMB add the sums of every parameter, in one message: the optimiser then waits for every gradient,
// and `apply` takes the whole arena, of which it updates this rank's ranges.
//
// Sparse parameters. Plain SGD (no momentum, no decay) does not change a row whose gradient is zero, so it is applied
// only to marked rows (Arenas::row_marks), and the weights are those of a dense update. Every other rule also changes
// rows without a gradient, and updates the whole table, except with `lazy`: then momentum, decay and moments of a row
// change only in steps that touch it (LazyAdam).
//
// Average of weights (optimizer.average_decay; Polyak, Juditsky 1992). After step t, from 0 on,
//   a = d a + (1 - d) w,   d = min(average_decay, (1 + t) / (10 + t))
// over weights and statistics, from a = the first weights: TensorFlow's ExponentialMovingAverage with num_updates. It
// is updated in `apply`, so only an optimiser that applies every range has it.
//
// Cost. One pass over weights, gradients and states; each norm takes one more pass over its values, and LAMB one more
// over its direction. Memory: the states of the rule (config/traits/rules.hpp), each as large as the weights, which the
// constructor allocates (MemoryError).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "device/arenas.hpp"
#include "optim/loss_scale.hpp"
#include "optim/part_sums.hpp"
#include "optim/rules.hpp"

namespace echelon::inline optim {

// Whether a step needs to update only the touched rows of this parameter: it is sparse, and the rule is plain SGD
// without decay, or optimizer.lazy is set.
bool rows_suffice(const OptimiserConfig& config, const Parameter& parameter);

class Optimiser {
 public:
  // `parts` is for a split model, else null. ConfigError for an unknown rule; a failed check if norms of slices are
  // needed and `parts` is null. Arenas and parts must outlive the optimiser.
  Optimiser(const OptimiserConfig& config, Arenas& arenas, const LossScaling& scaling = {}, PartSums* parts = nullptr);
  // Takes the steps of `like` on other arenas with the same parameters and dtype on a host device, as a server needs
  // whose weights differ from the weights that this rank computes with. If the device of `like` is also a host device,
  // both share the states of `like`, which must outlive this object; otherwise the states are separate, and zero.
  // Failed checks: whole_parameters() or waits().
  Optimiser(const Optimiser& like, Arenas& arenas);

  const OptimiserConfig& config() const { return config_; }

  // Sets values[i] to its sum over ranks; collective over them, with the same bits on all.
  using Sum = std::function<void(std::span<double>)>;
  // Restricts this rank to these ranges, which are disjoint, in the order of the arenas, possibly none. The ranges of
  // all ranks of `over_servers` cover the arenas once.
  void serve(std::vector<ArenaRange> ranges, Sum over_servers);

  // Must be called once before each step. `step` counts the earlier steps, including skipped ones.
  void begin_step(std::int64_t step, double learning_rate);
  // Whether every gradient must be complete before the first `apply` of a step, because `accept` or `clip` come
  // between.
  bool waits() const { return clips() || loss_scale_.active() || measures_parts(); }
  // Whether rows that no replica touched are left unchanged although the rule would change them.
  bool lazy() const { return config_.lazy; }
  // The factor on the loss in this step's backward; `apply` takes it out again.
  double loss_scale() const { return step_scale_; }
  LossScale& scaling() { return loss_scale_; }
  // With loss scaling: tests all gradients of the arena for inf and NaN, adapts the scale, and decides about this step.
  // give_up: no smaller scale would help, and the caller ends the run with NumericError. Without loss scaling it always
  // returns `apply`.
  enum class Verdict : std::uint8_t { apply, skip, give_up };
  Verdict accept();
  // With clip_norm: `clip` must be called between begin_step and apply.
  bool clips() const { return config_.clip_norm > 0; }
  // Sum of squares of the gradients of weights in this range, including the loss scale; without statistics, and without
  // parameters that another rank of a split model counts.
  double measure(ArenaRange range);
  // `apply` will scale the gradients of this step by min(1, clip_norm / (norm + 1e-6)), as PyTorch does, where norm =
  // sqrt(squares) / loss scale and `squares` is the sum of `measure` over the arena. Returns the norm over all ranks of
  // the model.
  double clip(double squares);
  // One step of the rule on [range.begin, range.end) of the arenas, in elements; on a device it is only enqueued.
  // Ranges of a step cover the arenas once, in any order. Increments the version of the weights (Arenas::touch). Failed
  // checks: `clip` or `accept` is missing, or `range` has a part of a parameter where whole ones are needed.
  void apply(ArenaRange range);

  // Whether steps depend on norms of parameters (LARS, LAMB): without `serve`, ranges of `apply` must then consist of
  // whole parameters.
  bool whole_parameters() const { return info_.trust != TrustRatio::none; }
  // Arena of state `index` of the rule, in device memory, the layout of the weights.
  void* state(int index) const { return states_[static_cast<std::size_t>(index)].data(); }
  int states() const { return static_cast<int>(info_.states.size()); }
  std::size_t state_bytes() const;  // bytes of all arenas here
  // The states are zero although `step` steps were done, because only weights were taken from another run: the bias
  // correction of moments counts from here.
  void begin_states(std::int64_t step) { moments_begin_ = step - loss_scale_.skipped(); }
  bool averages() const { return average_.data() != nullptr; }
  // The average becomes the present weights.
  void begin_average();
  // Exchanges the weights and their average; a second call restores both.
  void exchange_average();
  void visit_average(StateVisitor& visitor);  // "average/<parameter>"
  // Visits tensors "optimiser/<state>/<parameter>" of Placement::slice, scalars of the loss scale, and "moments_begin"
  // if the rule has moments. LAMB's direction is not saved.
  void visit_state(StateVisitor& visitor);

 private:
  struct Segment {  // a run of parameters that take the same rule and scalars
    ArenaRange range;
    ParameterKind kind;
    bool decays;
    double momentum;
    bool adapts;     // one parameter with its own trust ratio
    bool counts;     // counted in `measure`
    int table = -1;  // index of the sparse parameter whose touched rows alone need to be updated; -1: none
    // Sums of squares of a segment that adapts: of its weights, and of the values in its ratio's denominator.
    double weights = 0, step = 0;
  };
  static constexpr int kMaxStates = 4;

  void make_segments();
  // Whether norms of parameters are sums over ranks.
  bool measures_parts() const { return !sliced_.empty() || (over_servers_ && whole_parameters()); }
  // Calls act(segment, part) for the parts of this range that this rank steps on.
  template <class Act>
  void each_part(ArenaRange range, const Act& act);
  void add_over_ranks(double& value);
  // The parts of a step on a segment before and after its norms are known.
  void prepare(Segment& segment, ArenaRange part);
  void finish(const Segment& segment, ArenaRange part);
  void add_norms();
  void run_rule(const Segment& segment, ArenaRange part, const RuleScalars& scalars);
  // Requests that the sum of squares of `part` be added to `sum`; add_squares adds all requested sums, so that a GPU is
  // waited for only once.
  void ask_squares(const void* values, ArenaRange part, double& sum);
  void add_squares();
  void reserve_squares();
  void* direction_at(std::int64_t elem) const;
  void average(ArenaRange part);

  OptimiserConfig config_;
  Arenas& arenas_;
  const RuleInfo& info_;
  PartSums* parts_;
  std::vector<Segment> segments_;
  std::vector<std::size_t> sliced_;    // segments that adapt and are slices of tensors
  std::vector<std::size_t> adapting_;  // all that adapt
  std::vector<double> norm_sums_;      // two for each of them
  std::vector<VectorRange> asked_;     // requests of ask_squares, the destination of each sum, and the sums
  std::vector<double*> asked_for_;
  std::vector<double> squares_;
  std::vector<ArenaRange> own_;  // ranges that this rank steps on
  Sum over_servers_;             // null: this rank steps on everything
  std::vector<Memory> states_;   // the rule's, then LAMB's direction
  Memory average_, aside_;       // the average, and room to exchange a part of it
  std::unique_ptr<Update> rule_;
  std::unique_ptr<Update> running_;
  std::unique_ptr<Update> descend_;  // TrustRatio::update
  LossScale loss_scale_;
  std::int64_t moments_begin_ = 0;  // updates done before the moments began
  double step_scale_ = 1;           // loss scale of this step
  RuleScalars scalars_;
  bool clipped_ = false;   // in this step
  bool accepted_ = false;  // in this step
};

}  // namespace echelon::inline optim
