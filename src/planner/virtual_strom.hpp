// Decentralised exchange by its very machine (exchange/strom/protocol.hpp) on virtual time: messages of as many bytes
// as the codec's formula has them, applied as the strategy does.
#pragma once

#include "planner/strategy_models.hpp"

namespace echelon::inline planner {

// Bytes of a message of one bucket of so many values.
double strom_message_bytes(const StromKeys& keys, double elems);
// Seconds of the codec in a step: one message of each bucket is made, and those of the others are added.
double strom_codec_s(const StrategySetting& setting, int replicas);

// Few enough messages for half a second.
bool can_simulate_strom(const StrategySetting& setting, int replicas);
// Mean seconds from step to step over all replicas, after the first steps; those of replicas vary as drawn.
double simulated_strom_s(const StrategySetting& setting, int replicas);
// The closed form.
double strom_formula_s(const StrategySetting& setting, int replicas);

}  // namespace echelon::inline planner
