// SPDX-License-Identifier: Apache-2.0
// [exchange.strom]: the keys of strategy "strom" (exchange/strom/).
#pragma once

#include <cstdint>

#include "config/strategies/keys.hpp"

namespace echelon::inline config {

enum class StromRounds : std::uint8_t { synchronous, asynchronous };
enum class StromTopology : std::uint8_t { all, ring };
enum class StromIndices : std::uint8_t { raw, entropy };

inline constexpr int kStromSlots = 8;  // asynchronous: messages in flight per origin, bucket and link
constexpr int strom_slots(bool asynchronous) { return asynchronous ? kStromSlots : 2; }

struct StromKeys {
  StromRounds rounds = StromRounds::synchronous;
  StromTopology topology = StromTopology::all;
  double tau = 0;
  double density = 0.01;
  StromIndices indices = StromIndices::entropy;
  std::int64_t warmup_steps = 0;

  template <class Section>
  static void describe(Section& section) {
    section.key("rounds", &StromKeys::rounds, section.words({"synchronous", "asynchronous"}),
                "synchronous: each step waits for the messages of all replicas; asynchronous: a replica applies what "
                "has arrived before its next step, and waits for nobody");
    section.key("topology", &StromKeys::topology, section.words({"all", "ring"}),
                "all: a replica sends its message to every other one; ring: to the next one, which forwards it");
    section.key("tau", &StromKeys::tau, section.range(0, 1e9),
                "entries x of the residual with |x| >= tau are sent as +tau or -tau; 0: tau adapts to density");
    section.key("density", &StromKeys::density, section.range(1e-6, 1),
                "tau = 0: target fraction of the values that is sent in a step");
    section.key("indices", &StromKeys::indices, section.words({"raw", "entropy"}),
                "raw: 32 bits an entry, index and sign; entropy: distances between indices, Golomb-coded");
    section.key("warmup_steps", &StromKeys::warmup_steps, section.range(0, 1e12),
                "number of steps at the start of the run in which whole updates are sent");
  }
  template <class Table>
  static void choices(Table& table) {
    table.choice("rounds", "\"asynchronous\"", {Property::own_pace, Property::momentum_by_delay},
                 [](const StromKeys& keys) { return keys.rounds == StromRounds::asynchronous; });
  }
};

}  // namespace echelon::inline config
