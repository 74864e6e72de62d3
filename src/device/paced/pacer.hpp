// Sleeps that add up.
#pragma once

namespace echelon::inline device {

// What puts a thread to sleep.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  // Returns the seconds that have passed: `seconds` or more.
  virtual double sleep(double seconds) const = 0;
};
const Sleeper& host_sleeper();  // CLOCK_MONOTONIC; never spins

// Accumulated sleep time of a device. Waking late, up to 5 ms, is paid back by the next sleep, and what is too short to
// sleep is collected, so that many short ops take the sum of their times. One thread at a time.
class Pacer {
 public:
  // `sleeper` outlives the pacer.
  explicit Pacer(const Sleeper& sleeper = host_sleeper()) : sleeper_(sleeper) {}

  // Takes `seconds`, now or together with later calls; below 0: so much of later calls is taken already. Returns the
  // seconds slept.
  double spend(double seconds);
  // Sleeps off what was collected; likewise.
  double settle();
  // Of what is taken already no more than 5 ms count from now on.
  void forgive();
  // Sleeps shorter than this are collected.
  void set_shortest(double seconds);

 private:
  double sleep_debt();

  const Sleeper& sleeper_;
  double shortest_s_ = 20e-6;  // shorter sleeps cost more in system calls than they last
  double debt_s_ = 0;          // below 0: slept too long
};

}  // namespace echelon::inline device
