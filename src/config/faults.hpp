// SPDX-License-Identifier: Apache-2.0
// Faults that a run injects into itself, parsed from the sentences of fault.inject (grammar: slurm/FAULTS.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline config {

enum class FaultKind : std::uint8_t {
  kill,
  stop,
  slow,
  delay,
  drop,
  corrupt,
  cut,
  disk_full,
  short_writes,
  fsync_fails,
  slow_reads,
  flip_weight,
  flip_gradient,
  flip_checkpoint,
  flip_shard,
};

// Whether the fault fires once per run: if it fired in an earlier attempt, it does not fire in a later one. The other
// faults last as long as they are configured.
constexpr bool fires_once(FaultKind kind) {
  switch (kind) {
    case FaultKind::slow:
    case FaultKind::delay:
    case FaultKind::disk_full:
    case FaultKind::short_writes:
    case FaultKind::fsync_fails:
    case FaultKind::slow_reads: return false;
    default: return true;
  }
}
// Whether the fault acts on messages of its rank, so that the rank's transport must be wrapped.
constexpr bool is_of_messages(FaultKind kind) {
  return kind == FaultKind::delay || kind == FaultKind::drop || kind == FaultKind::corrupt || kind == FaultKind::cut;
}
// Whether the fault acts when its rank writes or reads files.
constexpr bool is_of_files(FaultKind kind) {
  return kind == FaultKind::disk_full || kind == FaultKind::short_writes || kind == FaultKind::fsync_fails ||
         kind == FaultKind::slow_reads || kind == FaultKind::flip_shard;
}
// Whether the fault needs its rank to have a process of its own.
constexpr bool is_of_processes(FaultKind kind) { return kind == FaultKind::kill || kind == FaultKind::stop; }

struct Fault {
  std::string text;  // the sentence as given
  FaultKind kind = FaultKind::kill;
  std::int64_t rank = 0;                // rank in the launch; -1: drawn from fault.seed
  double amount = 0;                    // seconds (delay; stop, 0: forever), a factor (slow) or bytes (disk full)
  std::int64_t bit = -1, element = -1;  // flip_weight, flip_gradient; -1: drawn
  std::int64_t first_step = 0, last_step = 0;  // range to draw the step from; 0: from an attempt's first step
  std::string phase;                           // phase of the step; "": any
};

// Throws ConfigError, with the nearest form but without a place, if the sentence is not a fault.
Fault parse_fault(std::string_view text);
// Parses fault.inject. ConfigError, with the place: a sentence that is no fault, or faults without run.allow_faults.
std::vector<Fault> faults_of(const Config& config);

// Splits ECHELON_FAULT at semicolons.
std::vector<std::string> split_faults(std::string_view text);

}  // namespace echelon::inline config
