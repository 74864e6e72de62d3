// The optimiser of a rank: one rule, its states in arenas of their own, and the scalars of each step.
//
// A strategy calls it, never the loop: `apply` for every range whose summed gradient is complete (a server calls it for
// the ranges that it owns). Weights and statistics of a range are told apart here: `statistic` parameters take the
// running-average rule whatever the optimiser.
//
// Norms. With `clip_norm` a strategy waits for every gradient, adds up `measure` over all ranges and calls `clip`
// before the first `apply` of the step. LARS and LAMB measure each parameter inside `apply`, whose ranges are then
// whole parameters; biases and batch norm's scales and shifts (those that do not decay) are left out, with a ratio
// of 1. All norms are sums in double in an order of their own, so replicas with the same gradients take the same step.
// A scaled loss (optim/loss_scale.hpp) is taken out of the gradient in the rule's own pass, beside clipping;
// statistics, which are no gradients, are not scaled. A skipped step counts neither as an update of Adam's moments nor
// in LAMB's.
//
// Split models. `measure` counts what several ranks hold whole on one of them (optim/part_sums.hpp), `clip`
// and `accept` add over the model's ranks. LARS and LAMB add the sums of slices over the ranks that hold them, all at
// once: with slices to measure the optimiser waits for every gradient and `apply` takes the whole arena.
//
// Sparse parameters. Plain SGD (no momentum, no decay) leaves a row as it is where the gradient is zero, so it applies
// marked rows alone (Arenas::row_marks) and the weights are those of a dense update. Every other rule moves rows
// without a gradient too, and updates the whole table, unless `lazy` says that rows wait: their momentum, decay and
// moments stand still until they are touched (LazyAdam).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "device/arenas.hpp"
#include "optim/loss_scale.hpp"
#include "optim/part_sums.hpp"
#include "optim/rules.hpp"

namespace echelon::inline optim {

// Whether this sparse parameter's touched rows are all that a step updates.
bool rows_suffice(const OptimiserConfig& config, const Parameter& parameter);

class Optimiser {
 public:
  // `parts`: of a split model, else null.
  Optimiser(const OptimiserConfig& config, Arenas& arenas, const LossScaling& scaling = {}, PartSums* parts = nullptr);

  // The scalars that hold until the next call. `step` counts updates done before.
  void begin_step(std::int64_t step, double learning_rate);
  // Whether every gradient must be there before the first `apply` of a step: `accept` and `clip` come in between.
  bool waits() const { return clips() || loss_scale_.active() || !sliced_.empty(); }
  // Whether rows that no replica touched are left out though the rule would move them.
  bool lazy() const { return config_.lazy; }
  // The factor on the loss in this step's backward; `apply` takes it out again.
  double loss_scale() const { return step_scale_; }
  // With loss scaling: looks at all gradients, adapts the scale, and says what to do with this step.
  enum class Verdict : std::uint8_t { apply, skip, give_up };
  Verdict accept();
  // With clip_norm: `clip` comes between begin_step and apply.
  bool clips() const { return config_.clip_norm > 0; }
  // Sum of the squares of the weights' gradients in this range, as they lie; statistics are left out, and what another
  // rank of a split model answers for.
  double measure(ArenaRange range);
  // Scales the step's gradients by min(1, clip_norm / (norm + 1e-6)), PyTorch's form; `squares` is the sum of `measure`
  // over everything. Gives the norm, without the loss's scale.
  double clip(double squares);
  // w -= f(g) on this range of the arenas; bumps the arenas' version.
  void apply(ArenaRange range);

  // The rule looks at whole parameters: `apply` takes no parts of them.
  bool whole_parameters() const { return info_.trust != TrustRatio::none; }
  // Arena of a state, on the device; the rule's own come first.
  void* state(int index) const { return states_[static_cast<std::size_t>(index)].data(); }
  int states() const { return static_cast<int>(info_.states.size()); }
  std::size_t state_bytes() const;  // of all arenas here
  // The states are zero though `step` updates were done: the weights are another run's. Moments are made up for from
  // here.
  void begin_states(std::int64_t step) { moments_begin_ = step - loss_scale_.skipped(); }
  // "optimiser/<state>/<parameter>", slices.
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
  // What a step does with a segment before its norms are known, and once they are.
  void prepare(Segment& segment, ArenaRange part);
  void finish(const Segment& segment, ArenaRange part);
  void add_over_slices();
  void run_rule(const Segment& segment, ArenaRange part, const RuleScalars& scalars);
  double squares(const void* values, ArenaRange part);
  void* direction_at(std::int64_t elem) const;

  OptimiserConfig config_;
  Arenas& arenas_;
  const RuleInfo& info_;
  PartSums* parts_;
  std::vector<Segment> segments_;
  std::vector<std::size_t> sliced_;  // segments that adapt and are slices of tensors
  std::vector<double> slice_sums_;   // two of each
  std::vector<Memory> states_;       // the rule's, then LAMB's direction
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
