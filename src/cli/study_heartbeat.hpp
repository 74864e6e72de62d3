// A sign of life of a cell of a study.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "study/study.hpp"

namespace echelon::cli {

// For as long as it lives, while a cell runs: a line now and then, how far the cell is by its status.json. On a
// terminal the cell draws a bar by itself.
class StudyHeartbeat {
 public:
  // `steps`: of the cell, in all. How often, and whether, as its run.heartbeat_s and run.progress say.
  StudyHeartbeat(const StudyCell& cell, std::int64_t steps);
  ~StudyHeartbeat();
  StudyHeartbeat(const StudyHeartbeat&) = delete;

 private:
  void beat();
  std::int64_t step() const;

  const StudyCell& cell_;
  const std::int64_t steps_;
  std::string run_;  // its folder
  double every_s_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace echelon::cli
