// SPDX-License-Identifier: Apache-2.0
// Every update rule, schedule and scaling of the learning rate, with its properties. A new rule needs a line here and
// its body in device/update_rules/<name>.hpp, listed in device/update_rules/list.hpp.
//
// Declares which rule can be combined with what (config/combinations.cpp), which keys it reads (config/unfit.cpp) and
// its states in optim/. tests/unit/optim/test_declared_rules.cpp compares this with the bodies.
#pragma once

#include <cstdint>

#include "config/traits/words.hpp"

namespace echelon::inline config {

// The norm that a layer's trust ratio divides by.
enum class TrustRatio : std::uint8_t {
  none,
  gradient,  // LARS: norm of the gradient, measured before the rule's pass
  update,    // LAMB: norm of the direction that the rule's pass leaves in its last state; `descend` then takes the step
};

struct RuleTraits {
  std::string_view name;
  Words states = {};  // "momentum"; each is an arena of the weights' size
  TrustRatio trust = TrustRatio::none;
  bool unbiases = false;  // the states are moments that start at zero, corrected by RuleScalars::unbias1 and unbias2
  Words reads = {};       // keys of [optimizer] that this rule reads and some others do not

  // Arenas besides weights and gradients: the states, and LAMB's direction, which checkpoints do not contain.
  constexpr std::size_t arenas() const { return states.size() + (trust == TrustRatio::update ? 1 : 0); }
};

// clang-format off
#define ECHELON_RULES(X)                                                                                            \
  X(sgd, .states = {"momentum"},                                                                                    \
    .reads = {"momentum", "nesterov", "momentum_before_coding"})                                                    \
  X(adam, .states = {"first_moment", "second_moment"}, .unbiases = true, .reads = {"beta1", "beta2", "epsilon"})    \
  X(adamw, .states = {"first_moment", "second_moment"}, .unbiases = true, .reads = {"beta1", "beta2", "epsilon"})   \
  X(rmsprop, .states = {"mean_square", "momentum"}, .reads = {"momentum", "alpha", "epsilon"})                      \
  X(lars, .states = {"momentum"}, .trust = TrustRatio::gradient, .reads = {"momentum", "trust_coefficient"})        \
  X(lamb, .states = {"first_moment", "second_moment"}, .trust = TrustRatio::update, .unbiases = true,               \
    .reads = {"beta1", "beta2", "epsilon"})
// clang-format on

#define X(rule, ...) RuleTraits{.name = #rule, __VA_ARGS__},
inline constexpr RuleTraits kRules[] = {ECHELON_RULES(X)};
#undef X

struct ScheduleTraits {
  std::string_view name;
  bool spans_the_run = false;  // depends on the last step, so a run of another length is another run (config_hash)
                               // unless schedule_epochs is set
  bool rises_itself = false;   // begins with a rise of its own, and has no warmup_epochs
  Words reads = {};            // keys of [optimizer]
};
inline constexpr ScheduleTraits kSchedules[] = {
    {.name = "constant"},
    {.name = "step", .reads = {"decay_at_epochs", "decay_factor"}},
    {.name = "cosine", .spans_the_run = true, .reads = {"final_factor", "schedule_epochs"}},
    {.name = "polynomial", .spans_the_run = true, .reads = {"final_factor", "power", "schedule_epochs"}},
    {.name = "piecewise_constant", .reads = {"points", "factors", "points_in"}},
    {.name = "piecewise_linear", .rises_itself = true, .reads = {"points", "factors", "points_in"}},
    {.name = "one_cycle",
     .spans_the_run = true,
     .rises_itself = true,
     .reads = {"first_factor", "rise", "anneal", "final_factor", "schedule_epochs"}}};

struct ScalingTraits {
  std::string_view name;
  Words reads = {};  // keys of [optimizer]
};
inline constexpr ScalingTraits kScalings[] = {
    {.name = "none"}, {.name = "linear", .reads = {"base_batch"}}, {.name = "sqrt", .reads = {"base_batch"}}};

}  // namespace echelon::inline config
