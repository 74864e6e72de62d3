// The optimiser of a rank: one rule, its states in arenas of their own, and the scalars of each step.
//
// A strategy calls it, never the loop: `apply` for every range whose summed gradient is complete (a server calls it for
// the ranges that it owns). Weights and statistics of a range are told apart here: `statistic` parameters take the
// running-average rule whatever the optimiser.
//
// Norms over groups (global clip, LARS, LAMB) come with two more calls, `measure(range) -> partial sums` before and
// scalars by group in `apply`; whoever owns the groups adds the sums over ranks in between.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "device/arenas.hpp"
#include "optim/rules.hpp"

namespace echelon {

class Optimiser {
 public:
  Optimiser(const OptimiserConfig& config, Arenas& arenas);

  // The scalars that hold until the next call. `step` counts updates done before.
  void begin_step(std::int64_t step, double learning_rate);
  // w -= f(g) on this range of the arenas; bumps the arenas' version.
  void apply(ArenaRange range);

  int states() const { return static_cast<int>(states_.size()); }
  std::size_t state_bytes() const;
  // "optimiser/<state>/<parameter>", slices.
  void visit_state(StateVisitor& visitor);

 private:
  struct Segment {  // a run of parameters that take the same rule and scalars
    ArenaRange range;
    ParameterKind kind;
    bool decays;
    double momentum;
  };
  static constexpr int kMaxStates = 4;

  OptimiserConfig config_;
  Arenas& arenas_;
  const RuleInfo& info_;
  std::vector<Segment> segments_;
  std::vector<Memory> states_;
  std::unique_ptr<Update> rule_;
  std::unique_ptr<Update> running_;
  RuleScalars scalars_;
};

}  // namespace echelon
