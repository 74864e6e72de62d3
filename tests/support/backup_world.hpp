// SPDX-License-Identifier: Apache-2.0
// Training with backup workers on virtual time: schedules drawn by seed, and an observer that checks every step against
// the definition while the machines run. Weights and gradients are integers that tell who made them at which step.
#pragma once

#include <map>
#include <vector>

#include "comm/disturbed.hpp"
#include "comm/virtual/world.hpp"
#include "exchange/backup/protocol.hpp"

namespace echelon::test {

struct BackupSchedule {
  int workers = 1, needed = 1, ranks = 1;
  std::int64_t first_step = 0, steps = 10;  // in the run's step numbers
  std::int64_t period = 100;                // steps between two meetings
  std::vector<Parts> parts;                 // one entry per bucket
  bool quiet_first = false;                 // hosts ask for quiet before all have come to a meeting, not after
  bool ragged = false;                      // some workers have no samples in some steps
  // Timing.
  double compute_s = 100e-6;
  double spread = 0.5;                   // a step takes uniformly compute_s * [1 - spread / 2, 1 + spread / 2]
  std::vector<double> slowness;          // factor of the step time, one per worker
  int sends = 8;                         // most sends that a rank may have in flight
  std::vector<Disturbance> disturbance;  // one per rank
  VirtualNetwork network;

  // weight(): samples of a worker in a step; whole(): samples of all workers in a step.
  double weight(int worker, std::int64_t step) const;
  double whole(std::int64_t step) const;
  std::int64_t end() const { return first_step + steps; }
};

// Draws any schedule that the protocol permits; the same seed gives the same schedule.
BackupSchedule draw_backup_schedule(std::uint64_t seed);
// Equal workers with two buckets; the last worker serves nothing.
BackupSchedule equal_backups(int workers, int needed, std::int64_t steps);

struct BackupOutcome {
  std::vector<std::vector<int>> entered;       // workers that entered each step from first_step on, ascending
  std::vector<BackupRounds::Count> counts;     // one per worker
  std::vector<std::vector<double>> verdict_s;  // by worker and step: when a verdict led to the step; -1: none did
  std::uint64_t messages = 0, bytes = 0;       // sent by all ranks
};

// Runs the schedule to its end. Fails a check or throws EnvironmentError where anything violates the definition (a
// gradient of another step, or twice, or more or fewer than needed; parts of the weights of different steps; wrong
// counts; more than one message in a room; traffic after the end), or where a rank does not end.
BackupOutcome run_backups(const BackupSchedule& schedule);

}  // namespace echelon::test
