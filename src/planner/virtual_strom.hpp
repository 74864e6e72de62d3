// SPDX-License-Identifier: Apache-2.0
// Simulates decentralised exchange: the protocol that runs execute (exchange/strom/protocol.hpp) runs on virtual time,
// with messages of as many bytes as the codec's formula gives, applied as the strategy does.
#pragma once

#include "planner/strategy_models.hpp"

namespace echelon::inline planner {

// Bytes of a message of a bucket with this number of values.
double strom_message_bytes(const StromKeys& keys, double elems);
// Seconds of the codec in a step: a rank encodes one message per bucket and adds those of all others.
double strom_codec_s(const StrategySetting& setting, int replicas);

// Whether there are so few messages that the simulation takes half a second at most.
bool can_simulate_strom(const StrategySetting& setting, int replicas);
// Mean seconds from step to step over all replicas, after the first steps; the replicas' steps vary as drawn.
double simulated_strom_s(const StrategySetting& setting, int replicas);
// The closed form.
double strom_formula_s(const StrategySetting& setting, int replicas);

}  // namespace echelon::inline planner
