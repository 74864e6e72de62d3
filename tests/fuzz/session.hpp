// SPDX-License-Identifier: Apache-2.0
// Runs inputs of a target in processes of their own, so that a crash, a hang or excessive memory costs one input.
#pragma once

#include <cstdint>
#include <string>

#include "tests/fuzz/target.hpp"

namespace echelon::fuzz {

struct Session {
  std::uint64_t seed = 1;
  std::int64_t first = 0, inputs = 0;  // indices [first, first + inputs)
  double seconds = 0;                  // no input begins later; 0: no limit
  double input_s = 20;                 // an input that takes longer is a hang
  std::string failures;                // folder for the inputs that failed, made when there are any
  std::string command;                 // command line of this program, for messages
};

struct Tally {
  std::int64_t accepted = 0, refused = 0, failed = 0;
  std::int64_t explained = 0;  // refused, though a library crashed: its file was named (base/crash_note.hpp)
  double seconds = 0, slowest_s = 0;
};

// run_inputs() prints every failure with the command that repeats it, and ends after kMostFailures of them.
inline constexpr std::int64_t kMostFailures = 20;
// Share of inputs that may crash a library: libraries have defects that no check before them can find.
inline constexpr double kMostExplained = 1e-4;
Tally run_inputs(const TargetEntry& entry, const Place& place, const Session& session);

}  // namespace echelon::fuzz
