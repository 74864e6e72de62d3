// SPDX-License-Identifier: Apache-2.0
// Paces ranks that do compute (device.pace_ms): after each op the compute thread sleeps until the op has taken its
// share of the step's pace, so that gradients become ready over the paced time, and accuracy and time are measured in
// one run of more ranks than cores.
//
// The ops' shares are their times on a simulated device (op_time.hpp). An op that takes longer than its share shortens
// the following sleeps of the same step. A step whose ops still take longer than the pace is counted: the run's times
// are then those of the machine, which is reported but not refused, because it often happens in the first steps
// (kernels are selected, files are read). The pace covers only the ops of forward and backward passes; waits for other
// ranks, data and the optimiser's update come on top.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/hash_rng.hpp"
#include "device/paced/op_time.hpp"
#include "device/paced/pacer.hpp"

namespace echelon::inline device {

struct StepPaceOptions {
  double step_s = 0;  // time of a step's forward and backward passes; 0: the sum of its ops' times
  double jitter = 0;  // each step's pace is multiplied by e^(jitter z), z standard normal by (seed, rank, step)
  double spread = 0;  // each rank's pace is multiplied by e^(spread z), z by (seed, rank)
  double factor = 1;  // the pace is also multiplied by this
  std::uint64_t seed = 1;
  int rank = 0;
  OpTimes times = {};
};

// Totals of one rank's steps so far.
struct PaceRecord {
  double pace_s = 0;      // sum over all steps
  double over_steps = 0;  // number of steps that took more than kOverPace x their pace
  double worst = 0;       // largest ratio of a step's time to its pace
};
inline constexpr double kOverPace = 1.05;

// Not thread-safe: only the device's thread calls it. The device's ops run on the host.
class StepPace {
 public:
  // `clock` and `sleeper` outlive this object and tell the same time.
  explicit StepPace(StepPaceOptions options, const Clock& clock = host_clock(),
                    const Sleeper& sleeper = host_sleeper());

  // The seconds of each op of a program that runs forward and backward `passes` times per step, before the factors of
  // rank and step. Ops may be in any order; the results are zeros if there are none.
  std::vector<double> seconds_of(const std::vector<OpSpec>& ops, double passes) const;

  void begin_step(std::int64_t step);
  // Runs the work of an op that is to take `seconds` times this step's factor.
  template <class Work>
  void run(double seconds, const Work& work) {
    const double start_s = clock_.now_s();
    work();
    took(seconds * factor_, clock_.now_s() - start_s);
  }
  // Sleeps for the rest of the step's pace.
  void end_step();

  const PaceRecord& record() const { return record_; }

 private:
  void took(double pace_s, double busy_s);

  StepPaceOptions options_;
  const Clock& clock_;
  Pacer pacer_;
  HashRng draws_;
  double rank_factor_ = 1, factor_ = 1;
  double pace_s_ = 0, taken_s_ = 0;  // in the current step
  PaceRecord record_;
};

}  // namespace echelon::inline device
