// SPDX-License-Identifier: Apache-2.0
// Sleeps that add up exactly.
#pragma once

namespace echelon::inline device {

// The means by which a thread sleeps.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  // Returns the seconds that have passed: `seconds` or more.
  virtual double sleep(double seconds) const = 0;
};
const Sleeper& host_sleeper();  // CLOCK_MONOTONIC; never spins

// Accumulates the sleep time of a device. Waking up late, by up to 5 ms, is deducted from the next sleep, and times
// that are too short to sleep are collected, so that many short ops take the sum of their times. Not thread-safe.
class Pacer {
 public:
  // `sleeper` outlives the pacer.
  explicit Pacer(const Sleeper& sleeper = host_sleeper()) : sleeper_(sleeper) {}

  // Spends `seconds`, now or together with later calls; a negative value is time that was already spent and is deducted
  // from later calls. Returns the seconds slept.
  double spend(double seconds);
  // Sleeps for the collected time; returns the seconds slept.
  double settle();
  // From now on at most 5 ms of the time already spent are deducted.
  void forgive();
  // Sleeps shorter than this are collected.
  void set_shortest(double seconds);

 private:
  double sleep_debt();

  const Sleeper& sleeper_;
  double shortest_s_ = 20e-6;  // shorter sleeps cost more in system calls than they last
  double debt_s_ = 0;          // negative: it slept too long
};

}  // namespace echelon::inline device
