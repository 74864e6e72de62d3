// Faults that a run injects into itself: the sentences of fault.inject (slurm/FAULTS.md has the grammar), parsed.
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

// Of these, one that fired in an earlier attempt of a run does not fire again in a later one; the others last as long
// as they are configured.
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
// Acts on messages of its rank, so that its transport is wrapped.
constexpr bool is_of_messages(FaultKind kind) {
  return kind == FaultKind::delay || kind == FaultKind::drop || kind == FaultKind::corrupt || kind == FaultKind::cut;
}
// Acts where its rank writes or reads files.
constexpr bool is_of_files(FaultKind kind) {
  return kind == FaultKind::disk_full || kind == FaultKind::short_writes || kind == FaultKind::fsync_fails ||
         kind == FaultKind::slow_reads || kind == FaultKind::flip_shard;
}
// Needs a process for its rank alone.
constexpr bool is_of_processes(FaultKind kind) { return kind == FaultKind::kill || kind == FaultKind::stop; }

struct Fault {
  std::string text;  // as it was given
  FaultKind kind = FaultKind::kill;
  std::int64_t rank = 0;                // in the launch; -1: drawn from fault.seed
  double amount = 0;                    // seconds (stop: 0 for ever; delay), a factor (slow) or bytes (disk full)
  std::int64_t bit = -1, element = -1;  // flip_weight, flip_gradient; -1: drawn
  std::int64_t first_step = 0, last_step = 0;  // in a step of these, drawn; 0: from the first step of an attempt on
  std::string phase;                           // "": any
};

// ConfigError with the nearest form where it is no fault; no place.
Fault parse_fault(std::string_view text);
// fault.inject, parsed. ConfigError with the place: a sentence that is no fault, faults without run.allow_faults.
std::vector<Fault> faults_of(const Config& config);

// The words of ECHELON_FAULT, between semicolons.
std::vector<std::string> split_faults(std::string_view text);

}  // namespace echelon::inline config
