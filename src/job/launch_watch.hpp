// Ends a process of a launch where the start or the end of MPI takes too long: before a run has its watchdog, and after
// it (watchdog.hpp), a rank that is lost or stopped would be waited for without end.
//
// A thread counts its own ticks within one stretch (base/stretch.hpp), so that time in which the whole job was
// suspended does not count. Above the limit it writes to the log which stretch it is and which processes of this
// launch on this host are stopped, and ends the process by _exit(7); the launcher ends the others. In MPI_Init the
// limit is 5 s once this rank has received TERM: a launcher ends the others so where one has failed. Once the run has
// ended, and its status is written, only MPI is left to be closed: then the stopped processes are continued first, so
// that the launcher returns what the status says.
#pragma once

#include <functional>
#include <memory>

namespace echelon::inline job {

struct LaunchWatchOptions {
  double limit_s = 300;   // of one stretch: run.hang_timeout_s
  double closing_s = 30;  // the same once the run has ended; at most half of limit_s, which others may still wait by
  double look_every_s = 0.2;
  std::function<void(int exit_code)> end;  // tests replace it; default: _exit
};

class LaunchWatch {
 public:
  // Starts the thread; call it before MPI is started. The destructor joins it, within one tick.
  explicit LaunchWatch(LaunchWatchOptions options);
  ~LaunchWatch();
  LaunchWatch(const LaunchWatch&) = delete;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace echelon::inline job
