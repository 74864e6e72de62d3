// Training with backup workers on virtual time: schedules drawn by seed, and an observer that holds every step to the
// definition while the machines run. Weights and gradients are integers that tell who gave them at which step.
#pragma once

#include <map>
#include <vector>

#include "comm/disturbed.hpp"
#include "comm/virtual/world.hpp"
#include "exchange/backup/protocol.hpp"

namespace echelon::test {

struct BackupSchedule {
  int workers = 1, needed = 1, ranks = 1;
  std::int64_t first_step = 0, steps = 10;  // of the global count
  std::int64_t period = 100;                // steps between two meetings
  std::vector<Parts> parts;                 // by bucket
  bool quiet_first = false;                 // hosts ask for quiet before all have come to a meeting, not after
  bool ragged = false;                      // some workers have no samples in some steps
  // Timing.
  double compute_s = 100e-6;
  double spread = 0.5;                   // of that time: uniform in compute_s * [1 - spread / 2, 1 + spread / 2]
  std::vector<double> slowness;          // by worker
  int sends = 8;                         // budget of sends under way, by rank
  std::vector<Disturbance> disturbance;  // by rank
  VirtualNetwork network;

  // Samples of a worker in a step.
  double weight(int worker, std::int64_t step) const;
  double whole(std::int64_t step) const;
  std::int64_t end() const { return first_step + steps; }
};

// Anything that the protocol permits; the same for the same seed.
BackupSchedule draw_backup_schedule(std::uint64_t seed);
// Equal workers, of which the last serves nothing; two buckets.
BackupSchedule equal_backups(int workers, int needed, std::int64_t steps);

struct BackupOutcome {
  std::vector<std::vector<int>> entered;       // by step, from first_step on: ascending
  std::vector<BackupRounds::Count> counts;     // by worker
  std::vector<std::vector<double>> verdict_s;  // by worker: when a verdict led it to this step; -1: none did
  std::uint64_t messages = 0, bytes = 0;       // on the wire
};

// Runs it to its end. A failed check or EnvironmentError where anything is against the definition (a gradient of
// another step, or twice, or more or fewer than needed; parts of the weights of different steps; wrong counts; more
// than one message in a room; traffic after the end), or somebody does not end.
BackupOutcome run_backups(const BackupSchedule& schedule);

}  // namespace echelon::test
