// metrics.jsonl: one row a step and one an epoch, as they happen (the format is in train/README.md). Rank 0.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "train/hooks/hook.hpp"

namespace echelon {

class MetricsHook final : public Hook {
 public:
  // Throws EnvironmentError where the file cannot be opened.
  MetricsHook(const std::string& path, std::int64_t every_steps);

  void epoch_end(EpochRecord& record) override;
  void step_recorded(const StepRecord& record) override;
  void run_end(bool finished) override;

 private:
  void write(const std::string& row, bool flush);

  std::string path_;
  std::int64_t every_steps_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::string epoch_row_;  // written after the row of its last step
  double last_flush_s_ = 0;
};

}  // namespace echelon
