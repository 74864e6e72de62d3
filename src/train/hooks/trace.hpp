// SPDX-License-Identifier: Apache-2.0
// run.trace: the spans of all ranks in the steps that it names (base/spans.hpp), on rank 0's clock, as trace.json and
// trace.txt of the attempt.
//
// Offsets of clocks are estimated twice (comm/clock_offsets.hpp): before the window, at the last meeting before it
// where there is one, and when the spans are gathered; in between clocks are taken to drift evenly. They are gathered
// at the first meeting after the window at which every rank has left it, or at the end of the run. A trace that cannot
// be written is a warning: training goes on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/spans.hpp"
#include "comm/clock_offsets.hpp"
#include "comm/group.hpp"
#include "config/trace_steps.hpp"
#include "train/hooks/hook.hpp"

namespace echelon::inline train {

struct TraceSetting {
  TraceSteps steps;
  std::string folder;              // of the attempt
  std::string role, host;          // of this rank
  std::vector<std::string> hosts;  // by rank
  int channel = 0;                 // of `engine`
  bool own_pace = false;           // ranks do steps of their own
};

class TraceHook final : public Hook {
 public:
  // Made on all ranks of the engine. `recorder` and `engine` outlive it.
  TraceHook(TraceSetting setting, SpanRecorder& recorder, Engine& engine);

  void run_begin(std::int64_t first_step) override;
  void step_end(const StepRecord& record) override;
  void run_end(bool finished) override;

  // Any thread, beside all others: the run ends by an error. Writes what this rank has recorded; no effect where the
  // trace is written already, or a call before has done it. Then waits for the rank that makes the trace.
  void leave(double patience_s = 0);
  bool under_way();  // leave would write
  // The same, then makes the trace of what all ranks have left; of one rank, that which tells of the error. `lost`:
  // ranks that are gone. Blocks for up to `patience_s` and the time of the files. Failures are warnings.
  void leave_all(const std::string& why, const std::vector<int>& lost, double patience_s);

 private:
  struct Window {
    double origin_s = 0, begin_s = 0, end_s = 0;  // of rank 0's clock: first of all spans; of the workers' steps
  };
  bool all_over();
  void estimate_before();
  void write_part();
  void gather();
  Window window(const std::vector<Span>& spans);
  double aligned(int rank, double at_s) const;
  double error_s(int rank) const;

  TraceSetting setting_;
  SpanRecorder& recorder_;
  Engine& engine_;
  Group group_;
  std::vector<ClockOffset> before_, after_;  // by rank, on rank 0
  bool near_ = false;                        // `before_` is of the last meeting before the window
  std::atomic<bool> done_ = false;
  std::int64_t reached_ = 0;
  std::mutex leaving_;
  bool left_ = false, estimated_ = false;
  ClockOffset own_;  // the newest estimate
};

}  // namespace echelon::inline train
