// SPDX-License-Identifier: Apache-2.0
// metrics.jsonl: one row a step and one an epoch, as they happen (the format is in results/RECORDS.md). Rank 0.
//
// Rows reach the file whole, at the latest after a second, and the disk before each checkpoint counts (`settle`,
// `sync`), so that a kill at any moment leaves every row up to the newest checkpoint. A step that a checkpoint follows
// is therefore written before it: what its hooks take is counted in the next row.
#pragma once

#include <string>
#include <vector>

#include "train/hooks/hook.hpp"

namespace echelon::inline train {

class MetricsHook final : public Hook {
 public:
  // Throws EnvironmentError if the file cannot be opened; the calls below do if it cannot be written.
  // `metrics`: which figures of classes are written (evaluate.metrics).
  MetricsHook(const std::string& path, std::int64_t every_steps, std::vector<std::string> metrics = {});
  ~MetricsHook() override;

  void run_begin(std::int64_t first_step) override;
  void step_end(const StepRecord& record) override;
  void epoch_end(EpochRecord& record) override;
  void step_recorded(const StepRecord& record) override;
  void run_end(bool finished) override;
  // Adds the row of an evaluation that ends no epoch, before the row of the step that has just ended.
  void add_test(const char* type, const EpochFigures& figures);
  // A checkpoint that was written, as soon as rank 0 knows of it.
  void add_checkpoint(const CheckpointFigures& figures);
  // Writes the rows of all steps and epochs that have ended; bytes of the file then.
  std::int64_t settle();
  // Waits until what is written is on the disk. Any thread.
  void sync() const;

 private:
  bool wants(const StepRecord& record) const { return every_steps_ > 0 && record.own_step % every_steps_ == 0; }
  void write_step(const StepRecord& record);
  void write_epoch();
  void flush();
  [[noreturn]] void fail() const;

  std::string path_;
  std::int64_t every_steps_;
  std::vector<std::string> metrics_;
  int file_ = -1;
  std::string rows_;                  // whole, not in the file yet
  const StepRecord* step_ = nullptr;  // ended, not among the rows yet
  std::string epoch_row_;             // not among them either; follows the row of its last step
  std::int64_t first_step_ = 0;       // done before this attempt
  bool trained_ = false;              // in this attempt, by any rank
  StepTimes late_;                    // of hooks, after the row of their step was written
  double last_flush_s_ = 0;
};

}  // namespace echelon::inline train
