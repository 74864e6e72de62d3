// SPDX-License-Identifier: Apache-2.0
// Reports that a cell of a study is still running.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "study/study.hpp"

namespace echelon::cli {

// While it exists, prints a line from time to time with the progress of the cell, read from its status.json. On a
// terminal the cell draws its own progress bar instead.
class StudyHeartbeat {
 public:
  // `steps`: total steps of the cell. The cell's run.heartbeat_s and run.progress set the interval and whether to
  // print.
  StudyHeartbeat(const StudyCell& cell, std::int64_t steps);
  ~StudyHeartbeat();
  StudyHeartbeat(const StudyHeartbeat&) = delete;

 private:
  void beat();
  std::int64_t step() const;

  const StudyCell& cell_;
  const std::int64_t steps_;
  std::string run_;  // folder of the cell's run
  double every_s_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace echelon::cli
