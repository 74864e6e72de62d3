// SPDX-License-Identifier: Apache-2.0
// The progress of an import (base/progress.hpp), which has no config: a line every 30 s or a bar on a terminal. The
// environment can change this as for runs, with ECHELON_RUN_HEARTBEAT_S and ECHELON_RUN_PROGRESS.
#pragma once

#include <cstdlib>
#include <string>

#include "base/environment.hpp"
#include "base/progress.hpp"

namespace echelon::inline data {

class ImportWork : public LongWork {
 public:
  // `total`: 0 in the first pass over an input, which counts it. `shown`: false on all ranks but the first.
  ImportWork(const char* unit, std::int64_t total, bool shown = true)
      : LongWork(total > 0 ? "import" : "import, first look", unit, total,
                 shown ? progress_style(asked("ECHELON_RUN_PROGRESS")) : ProgressStyle::none, seconds()) {}

 private:
  static std::string asked(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "auto";
  }
  static double seconds() {
    return positive_in_environment("ECHELON_RUN_HEARTBEAT_S", "seconds").value_or(kHeartbeat_s);
  }
};

}  // namespace echelon::inline data
