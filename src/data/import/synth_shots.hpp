// SPDX-License-Identifier: Apache-2.0
// Generated series with a class for each step: `echelon data synth --kind shots`.
#pragma once

#include <cstdint>
#include <memory>

#include "data/import/sequence_source.hpp"

namespace echelon::inline data {

// Returns discharges of a made-up tokamak: 60 to 300 steps of 14 signals. Two fifths end in a disruption, before which
// three signals grow; short bursts of the same signals mean nothing. The last 30 steps before a disruption have
// class 1. Functions of seed and index. Throws ConfigError for less than one sample.
std::unique_ptr<SequenceSource> make_shots(std::int64_t samples, std::uint64_t seed);

}  // namespace echelon::inline data
