// SPDX-License-Identifier: Apache-2.0
// Ends a process of a launch if the start or the end of MPI takes too long. Before a run has its watchdog, and after it
// (watchdog.hpp), the process would wait forever for a rank that is lost or stopped.
//
// A thread counts its own ticks within one stretch (base/stretch.hpp), so that time during which the whole job was
// suspended does not count. Above the limit it logs the stretch and the stopped processes of this launch on this host,
// and ends the process by _exit(7); the launcher ends the others. In MPI_Init the limit is 5 s after this rank has
// received TERM, by which a launcher ends the other ranks if one has failed. Once the run has ended and its status is
// written, only MPI has to be closed (job/closing.hpp): the limit is shorter, the stopped processes are continued
// first, and the exit code agrees with the status.
#pragma once

#include <functional>
#include <memory>

namespace echelon::inline job {

struct LaunchWatchOptions {
  double limit_s = 300;  // limit of one stretch: run.hang_timeout_s
  double look_every_s = 0.2;
  std::function<void(int exit_code)> end;  // replaced in tests; default: _exit
};

class LaunchWatch {
 public:
  // Starts the thread; must be called before MPI starts. The destructor joins it within one tick.
  explicit LaunchWatch(LaunchWatchOptions options);
  ~LaunchWatch();
  LaunchWatch(const LaunchWatch&) = delete;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace echelon::inline job
