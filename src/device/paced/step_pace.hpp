// Ranks that compute and are paced (device.pace_ms): after each op the compute thread sleeps until the op has taken its
// share of the step's pace, so that gradients become ready over the paced time and accuracy and time are measured in
// one run of more ranks than cores.
//
// The ops' shares are their times on a simulated device (op_time.hpp). An op that takes longer than its share shortens
// the sleeps after it in the same step. A step whose ops take longer than the pace all the same is counted: the run's
// times are then the machine's, which is reported and not refused, because the first steps (kernels are chosen, files
// are read) often are such. The pace covers the ops of forward and backward passes alone; waits for other ranks, data
// and the optimiser's update come on top.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/hash_rng.hpp"
#include "device/paced/op_time.hpp"
#include "device/paced/pacer.hpp"

namespace echelon::inline device {

struct StepPaceOptions {
  double step_s = 0;  // of forward and backward of a step; 0: the sum of its ops' times
  double jitter = 0;  // each step's pace is multiplied by e^(jitter z), z standard normal by (seed, rank, step)
  double spread = 0;  // each rank's by e^(spread z), z by (seed, rank)
  double factor = 1;  // and by this
  std::uint64_t seed = 1;
  int rank = 0;
  OpTimes times = {};
};

// The steps so far of one rank.
struct PaceRecord {
  double pace_s = 0;      // of all, summed
  double over_steps = 0;  // number of steps that took more than kOverPace x their pace
  double worst = 0;       // largest time of a step / its pace
};
inline constexpr double kOverPace = 1.05;

// One thread at a time, that of the device, whose ops run on the host.
class StepPace {
 public:
  // `clock` and `sleeper` outlive it and tell the same time.
  explicit StepPace(StepPaceOptions options, const Clock& clock = host_clock(),
                    const Sleeper& sleeper = host_sleeper());

  // The seconds of each op of a program that runs forward and backward `passes` times a step, before the factors of
  // rank and step. Any order; zeros for no ops.
  std::vector<double> seconds_of(const std::vector<OpSpec>& ops, double passes) const;

  void begin_step(std::int64_t step);
  // Runs the work of an op that shall take `seconds` x this step's factor.
  template <class Work>
  void run(double seconds, const Work& work) {
    const double start_s = clock_.now_s();
    work();
    took(seconds * factor_, clock_.now_s() - start_s);
  }
  // Sleeps off what is left of the step's pace.
  void end_step();

  const PaceRecord& record() const { return record_; }

 private:
  void took(double pace_s, double busy_s);

  StepPaceOptions options_;
  const Clock& clock_;
  Pacer pacer_;
  HashRng draws_;
  double rank_factor_ = 1, factor_ = 1;
  double pace_s_ = 0, taken_s_ = 0;  // of the step under way
  PaceRecord record_;
};

}  // namespace echelon::inline device
