// SPDX-License-Identifier: Apache-2.0
// [exchange.averaging]: the keys of strategy "averaging" (exchange/averaging/averaging.cpp).
#pragma once

#include <cstdint>
#include <optional>

#include "config/strategies/keys.hpp"

namespace echelon::inline config {

// The treatment of the optimiser's states when weights are averaged.
enum class AveragedStates : std::uint8_t { average, reset, local };

// The outer step. heavy_ball: its momentum follows the learning rate (SlowMo); nesterov: independent of it (DiLoCo).
enum class OuterStep : std::uint8_t { heavy_ball, nesterov };

struct AveragingKeys {
  std::int64_t period = 10;
  AveragedStates states = AveragedStates::local;
  std::int64_t synchronous_epochs = 0;
  double outer_momentum = 0;
  double outer_rate = 1;
  OuterStep outer_step = OuterStep::heavy_ball;

  constexpr bool nesterov() const { return outer_step == OuterStep::nesterov; }
  constexpr bool outer() const { return nesterov() || outer_momentum > 0 || outer_rate != 1; }

  template <class Section>
  static void describe(Section& section) {
    section.key("period", &AveragingKeys::period, section.range(1, 1e9),
                "number of local steps between two averagings of the weights; the end of an epoch averages too");
    section.key("states", &AveragingKeys::states, section.words({"average", "reset", "local"}),
                "optimiser states at an averaging: average: averaged like the weights; reset: set to zero; local: each "
                "replica keeps its own");
    section.key("synchronous_epochs", &AveragingKeys::synchronous_epochs, section.range(0, 1e9),
                "post-local SGD: number of epochs at the start of the run in which gradients are summed at every step");
    section.key("outer_momentum", &AveragingKeys::outer_momentum, section.range(0, 0.999999),
                "momentum of the outer step on the averaged change of the weights; 0: off");
    section.key("outer_rate", &AveragingKeys::outer_rate, section.range(0, 1e6),
                "rate of the outer step: factor on the averaged change of the weights");
    section.younger();
    section.key("outer_step", &AveragingKeys::outer_step, section.words({"heavy_ball", "nesterov"}),
                "heavy_ball: block momentum (SlowMo), whose momentum follows the learning rate; nesterov: independent "
                "of the learning rate (DiLoCo), for instance with outer_momentum = 0.9 and outer_rate = 0.7");
  }
  std::optional<Misfit> misfit() const {
    if (!nesterov() || outer_momentum > 0 || outer_rate != 1) return {};
    return Misfit{"outer_step",
                  "exchange.averaging.outer_step = \"nesterov\" with outer_momentum = 0 and outer_rate = 1 is plain "
                  "averaging; nearest valid: outer_momentum = 0.9 and outer_rate = 0.7, or leave outer_step out"};
  }
  template <class Table>
  static void choices(Table& table) {
    table.choice("synchronous_epochs", "1", {Property::sums_at_first},
                 [](const AveragingKeys& keys) { return keys.synchronous_epochs > 0; });
  }
};

}  // namespace echelon::inline config
