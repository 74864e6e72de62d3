// Sleeps that add up.
#pragma once

namespace echelon::inline device {

// Accumulated sleep time of a device. Waking late, up to 5 ms, is paid back by the next sleep, and what is too short to
// sleep is collected, so that many short ops take the sum of their times. One thread at a time.
class Pacer {
 public:
  // Takes `seconds`, now or together with later calls.
  void spend(double seconds);
  // Sleeps off what was collected.
  void settle();

 private:
  void sleep_debt();
  double debt_s_ = 0;  // below 0: slept too long
};

}  // namespace echelon::inline device
