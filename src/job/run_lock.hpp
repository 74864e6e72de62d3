// SPDX-License-Identifier: Apache-2.0
// The lock on a run's folder: only one process at a time trains a run.
//
// <run>/lock names the holder (host, boot id, process id, job, since when). The file stays, empty, when the run ends.
// Two criteria decide whether a holder is alive:
//   * an advisory lock of the kernel (fcntl F_OFD_SETLK) on the file, which disappears with the holder's process;
//   * a heartbeat: the holder renews the file's time every `beat_s`.
// On one host the first criterion decides. On shared file systems whose locks do not reach other hosts (Lustre with
// localflock, NFS with nolock) the second does: a holder on another host counts as dead if its file has not changed for
// `dead_s`. If it was renewed more recently, `take` watches the file until that time is reached, and refuses as soon as
// it is renewed. A holder that was wrongly considered dead (stopped for a minute) detects this in `confirm`, before it
// writes a checkpoint.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.hpp"

namespace echelon::inline job {

// Another process holds the lock.
struct HeldError : EnvironmentError {
  using EnvironmentError::EnvironmentError;
};

struct RunLockOptions {
  double beat_s = 10;        // interval of the heartbeat
  double dead_s = 60;        // age at which the heartbeat of another host's holder counts as dead
  bool kernel_locks = true;  // false: as on a file system without locks, for tests
  // Parts of the message to another process: what the holder does with the folder, and what to do instead.
  const char* use = "is being trained";
  const char* advice = "give this run another name (or run.results)";
};

class RunLock {
 public:
  explicit RunLock(RunLockOptions options = {}) : options_(options) {}
  ~RunLock() { release(); }
  RunLock(const RunLock&) = delete;

  // Takes the lock of a run's folder, which must exist, and starts the heartbeat's thread. Blocks for up to dead_s if
  // the holder is on another host. Throws HeldError with the holder if another process has it, EnvironmentError if the
  // file cannot be written. `job`: Slurm job, or "". One thread uses the object.
  void take(const std::string& run, const std::string& job);
  bool held() const { return fd_ >= 0; }
  // Throws EnvironmentError if another process has taken the lock since; no effect if none was taken. Reads the file.
  void confirm() const;
  // Empties the file if it still belongs to this process, and ends the heartbeat; no effect if none was taken.
  void release();

 private:
  void take_over(const std::string& path, bool locked);
  void wait_for_death(const std::string& path, const std::string& holder) const;
  void beat();

  RunLockOptions options_;
  std::string run_, own_;  // own_: content of the file
  int fd_ = -1;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace echelon::inline job
