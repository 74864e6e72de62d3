// The optimiser of a rank: one rule, its states in arenas of their own, and the scalars of each step. Formulas of the
// rules: device/update_rules/, one file each with its paper. All calls come from the rank's compute thread.
//
// A strategy calls it, never the loop: `apply` for every range whose summed gradient is complete (a server calls it for
// the ranges that it owns). Of a range, parameters of kind `statistic` (running means of batch norm) take the
// running-average rule whatever the rule of the optimiser is.
//
// Norms. With `clip_norm` a strategy waits for every gradient, adds up `measure` over all ranges and calls `clip`
// before the first `apply` of the step. LARS and LAMB measure each parameter inside `apply`, whose ranges are then
// whole parameters; parameters without weight decay (biases, scales and shifts of norms) have a ratio of 1. The ratios,
// with w and g of one parameter and d the direction of LAMB with its weight decay:
//   LARS   trust_coefficient |w| / (|g| + weight_decay |w|)     You, Gitman, Ginsburg 2017
//   LAMB   |w| / |d|                                            You et al. 2020
// and 1 where a norm is 0 or not finite. All norms are sums in double in an order that depends on sizes alone, so that
// replicas with the same gradients take the same step. A scaled loss (optim/loss_scale.hpp) is divided out of the
// gradient in the pass of the rule, beside clipping; statistics are not scaled. A skipped step does not count as an
// update in the bias correction of moments.
//
// Split models. `measure` counts a parameter that several ranks hold whole on one of them (optim/part_sums.hpp); `clip`
// and `accept` add over the ranks of the model: collective, one message of one value a step. LARS and LAMB add the sums
// of slices over the ranks that hold them, in one message: with slices to measure the optimiser waits for every
// gradient and `apply` takes the whole arena.
//
// Parts of the arenas (`serve`). Where several ranks each step on parts of the parameters, `accept` and `clip` add over
// them, and LARS and LAMB add the sums of every parameter, in one message: the optimiser then waits for every gradient
// and `apply` takes the whole arena, of which it updates this rank's ranges.
//
// Sparse parameters. Plain SGD (no momentum, no decay) leaves a row as it is where the gradient is zero, so it applies
// marked rows alone (Arenas::row_marks) and the weights are those of a dense update. Every other rule changes rows
// without a gradient too, and updates the whole table, except with `lazy`: then momentum, decay and moments of a row
// change only in steps that touch it (LazyAdam).
//
// Cost. One pass over weights, gradients and states; each norm one more pass over what it measures; LAMB one more over
// its direction. Memory: the states of the rule (config/traits/rules.hpp), each as large as the weights, all allocated
// by the constructor (MemoryError).
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

// Whether a step updates only the touched rows of this parameter: it is sparse, and the rule is plain SGD without decay
// or optimizer.lazy is set.
bool rows_suffice(const OptimiserConfig& config, const Parameter& parameter);

class Optimiser {
 public:
  // `parts`: of a split model, else null. ConfigError for an unknown rule; a failed check where norms of slices are
  // needed and `parts` is null. Arenas and parts outlive the optimiser.
  Optimiser(const OptimiserConfig& config, Arenas& arenas, const LossScaling& scaling = {}, PartSums* parts = nullptr);
  // Takes the steps of `like` on other arenas of the same parameters and dtype, whose device is a host's: for a server
  // whose weights are not those that this rank computes with. States are those of `like`, which outlives it, where that
  // one's device is a host's too; else its own, and zero. Failed checks: whole_parameters() or waits().
  Optimiser(const Optimiser& like, Arenas& arenas);

  const OptimiserConfig& config() const { return config_; }

  // values[i] = sum over ranks; collective over them, with the same bits on all.
  using Sum = std::function<void(std::span<double>)>;
  // From now on this rank steps on these ranges alone: disjoint, in the order of the arenas, possibly none. The ranges
  // of all ranks of `over_servers` cover the arenas once.
  void serve(std::vector<ArenaRange> ranges, Sum over_servers);

  // Once before each step. `step` counts the steps before, skipped ones included.
  void begin_step(std::int64_t step, double learning_rate);
  // Whether every gradient must be complete before the first `apply` of a step, because `accept` or `clip` come
  // between.
  bool waits() const { return clips() || loss_scale_.active() || measures_parts(); }
  // Whether rows that no replica touched stay though the rule would change them.
  bool lazy() const { return config_.lazy; }
  // The factor on the loss in this step's backward; `apply` takes it out again.
  double loss_scale() const { return step_scale_; }
  LossScale& scaling() { return loss_scale_; }
  // With loss scaling: tests all gradients of the arena for inf and NaN, adapts the scale, and decides about this step.
  // give_up: no smaller scale would help; the caller ends the run with NumericError. Always `apply` without loss
  // scaling.
  enum class Verdict : std::uint8_t { apply, skip, give_up };
  Verdict accept();
  // With clip_norm: `clip` comes between begin_step and apply.
  bool clips() const { return config_.clip_norm > 0; }
  // Sum of squares of the gradients of weights in this range, loss scale included; without statistics, and without
  // parameters that another rank of a split model counts.
  double measure(ArenaRange range);
  // `apply` will scale the gradients of this step by min(1, clip_norm / (norm + 1e-6)), as PyTorch does; norm =
  // sqrt(squares) / loss scale, `squares` being the sum of `measure` over the arena. Returns the norm over all ranks of
  // the model.
  double clip(double squares);
  // One step of the rule on [range.begin, range.end) of the arenas, in elements; on a device it is only enqueued.
  // Ranges of a step cover the arenas once, in any order. Increments the version of the weights (Arenas::touch). Failed
  // checks: `clip` or `accept` is missing, or a part of a parameter where whole ones are needed.
  void apply(ArenaRange range);

  // Steps depend on norms of parameters (LARS, LAMB): without `serve`, ranges of `apply` consist of whole ones.
  bool whole_parameters() const { return info_.trust != TrustRatio::none; }
  // Arena of state `index` of the rule, in device memory, the layout of the weights.
  void* state(int index) const { return states_[static_cast<std::size_t>(index)].data(); }
  int states() const { return static_cast<int>(info_.states.size()); }
  std::size_t state_bytes() const;  // of all arenas here
  // The states are zero though `step` steps were done, because only weights were taken from another run: the bias
  // correction of moments counts from here.
  void begin_states(std::int64_t step) { moments_begin_ = step - loss_scale_.skipped(); }
  // Tensors "optimiser/<state>/<parameter>" of Placement::slice, scalars of the loss scale, "moments_begin" where the
  // rule has moments. LAMB's direction is not saved.
  void visit_state(StateVisitor& visitor);

 private:
  struct Segment {  // a run of parameters that take the same rule and scalars
    ArenaRange range;
    ParameterKind kind;
    bool decays;
    double momentum;
    bool adapts;     // one parameter with a trust ratio of its own
    bool counts;     // in `measure`
    int table = -1;  // the sparse parameter that it is, where its touched rows are all that need be updated
    // Of one that adapts: sums of squares of its weights, and of what its ratio divides by.
    double weights = 0, step = 0;
  };
  static constexpr int kMaxStates = 4;

  void make_segments();
  // Norms of parameters are sums over ranks.
  bool measures_parts() const { return !sliced_.empty() || (over_servers_ && whole_parameters()); }
  // Of this range and those that this rank steps on: act(segment, part).
  template <class Act>
  void each_part(ArenaRange range, const Act& act);
  void add_over_ranks(double& value);
  // The part of a step on a segment before its norms are known, and after.
  void prepare(Segment& segment, ArenaRange part);
  void finish(const Segment& segment, ArenaRange part);
  void add_norms();
  void run_rule(const Segment& segment, ArenaRange part, const RuleScalars& scalars);
  // Asks for the sum of squares of `part` to be added to `sum`; add_squares adds all that were asked for, so that a
  // device out of the host's reach is waited for once.
  void ask_squares(const void* values, ArenaRange part, double& sum);
  void add_squares();
  void reserve_squares();
  void* direction_at(std::int64_t elem) const;

  OptimiserConfig config_;
  Arenas& arenas_;
  const RuleInfo& info_;
  PartSums* parts_;
  std::vector<Segment> segments_;
  std::vector<std::size_t> sliced_;    // segments that adapt and are slices of tensors
  std::vector<std::size_t> adapting_;  // all that adapt
  std::vector<double> norm_sums_;      // two of each
  std::vector<VectorRange> asked_;     // by ask_squares, with where each sum goes; and the sums
  std::vector<double*> asked_for_;
  std::vector<double> squares_;
  std::vector<ArenaRange> own_;  // that this rank steps on
  Sum over_servers_;             // null: this rank steps on everything
  std::vector<Memory> states_;   // the rule's, then LAMB's direction
  std::unique_ptr<Update> rule_;
  std::unique_ptr<Update> running_;
  std::unique_ptr<Update> descend_;  // TrustRatio::update
  LossScale loss_scale_;
  std::int64_t moments_begin_ = 0;  // updates done before the moments began
  double step_scale_ = 1;           // of this step
  RuleScalars scalars_;
  bool clipped_ = false;   // in this step
  bool accepted_ = false;  // likewise
};

}  // namespace echelon::inline optim
