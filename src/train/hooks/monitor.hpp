// SPDX-License-Identifier: Apache-2.0
// Watches of a run over itself while it trains ([monitor]); each watch is off, warns, or stops the run.
//
//   plateau      the loss of evaluations (without them the training loss of epochs) was not below the best by
//                plateau_change of it for plateau_evaluations in a row. Stop: the run is finished. All ranks see the
//                same losses; counting begins anew where a run is resumed
//   slow_rank    the median compute time (data, forward, backward) of a rank over slow_steps told steps is slow_factor
//                times the median rank's, of those that run the same part of the model (not where batch.shares differ),
//                or the least such median of its own. Stop: checkpoint, exit 75, so that a scheduler places it anew
//   memory       resident memory of a rank is memory_growth_mb above what it was after the first told steps, and grew
//                in the second half of that time too; told again after each further growth. Stop: the same
//   throttling   a rank's GPU runs below its clock for heat, or because the host asks for less power (told once, and
//                again after it recovered). Stop: the same
//   out_of_time  at its rate since the start of the attempt the run would end after Slurm ends the job
//
// Divergence has a hook of its own (divergence.hpp). Times and memory by rank come with the control words that rank 0
// gets anyway (control/tree.hpp: of some steps where there are many ranks; of meetings where replicas step at their own
// pace), so that no message is sent for this.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "config/schema.hpp"
#include "train/hooks/hook.hpp"

namespace echelon::inline train {

// The beginning of the reason of a run that a plateau has finished.
inline constexpr const char* kPlateau = "plateau at step";

struct MonitorSetting {
  const Config& config;
  std::vector<std::string> hosts;  // by worker
  std::vector<int> parts;          // of the model, by worker
  std::int64_t total_steps = 0;
  bool reports = true;                                // rank 0: warns, and asks to requeue
  std::function<double()> left_s = {};                // until Slurm ends the job
  std::function<void(const std::string&)> warn = {};  // one line
};

class MonitorHook final : public Hook {
 public:
  MonitorHook(MonitorSetting setting, const Clock& clock);

  // The loss of an evaluation between epochs, of all replicas.
  void take(std::int64_t step, double test_loss);

  void run_begin(std::int64_t first_step) override;
  void step_end(const StepRecord& record) override;
  void epoch_end(EpochRecord& record) override;
  bool ends_run() const override { return plateau_ && setting_.config.monitor.plateau == Watch::stop; }

  bool asks_to_requeue() const override { return requeue_; }
  // Why the run was ended by this; on rank 0; "" where it was not.
  const std::string& why() const { return why_; }

 private:
  struct Rank {
    std::deque<double> compute_s;                              // told last
    double least_s = std::numeric_limits<double>::infinity();  // median of a window
    bool slow = false, throttled = false;                      // was told
    double from_mb = 0;                                        // growth of memory is counted from here
    std::vector<double> rss_mb;                                // since then, thinned out
  };
  const MonitorConfig& keys() const { return setting_.config.monitor; }
  void tell(Watch watch, const std::string& text);
  void watch_times(const StepRecord& record);
  void judge_times(std::int64_t step);
  void watch_memory(const StepRecord& record);
  void watch_clocks(const StepRecord& record);
  void thin_out();
  void watch_end(std::int64_t step);
  std::string named(std::size_t rank) const;

  MonitorSetting setting_;
  const Clock& clock_;
  std::vector<Rank> ranks_;
  std::int64_t told_steps_ = 0, rss_every_ = 1;
  // Plateau
  double best_ = std::numeric_limits<double>::infinity();
  std::int64_t without_ = 0, evaluated_at_ = -1;
  bool plateau_ = false;
  // Time
  std::int64_t first_step_ = 0;
  double start_s_ = 0;
  bool told_end_ = false;
  bool requeue_ = false;
  std::string why_;
};

}  // namespace echelon::inline train
