// SPDX-License-Identifier: Apache-2.0
// Runs one plan on a transport without blocking: it keeps a window of steps in flight and makes progress in each call
// of advance. Not thread-safe: all calls come from the thread that drives the engine.
//
// Sends to one peer start in the plan's order, and so do receives from one peer and
// steps on shared memory; every other step starts as soon as the steps that it names are
// done. After `start` nothing is allocated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/dtype.hpp"
#include "comm/collective/plan.hpp"
#include "comm/collective/plan_memory.hpp"
#include "comm/collective/shared_steps.hpp"
#include "comm/collective/step_task.hpp"
#include "comm/helper_threads.hpp"
#include "comm/send_budget.hpp"
#include "comm/transport.hpp"

namespace echelon::inline comm {

// The first step in flight that is not done.
struct StepWait {
  std::int64_t step = 0;
  int peer = -1;
  bool sending = false;
  double since_s = 0;
};

// Threads that take over copies and sums of at least `least_bytes`; null: none.
struct Help {
  HelperThreads* threads = nullptr;
  std::size_t least_bytes = 0;
};

class Executor {
 public:
  // `window` steps are looked at together, at least kLeastWindow.
  explicit Executor(int window);

  // `data`, plan and form (null: values are sent unencoded) must stay valid until done() or cancel(), and so must
  // `help`. All messages have this `tag`: no other plan in flight between these ranks may use it. `scratch` grows as
  // the plan needs; null: the executor uses its own. Throws MemoryError if scratch cannot be allocated. A check fails
  // while another plan runs.
  void start(std::shared_ptr<const Plan> plan, void* data, DType dtype, int tag, WireForm* form = nullptr,
             const Help& help = {}, Scratch* scratch = nullptr);
  // Makes one pass over the window; returns true when any step started or ended. Time and memory are O(window),
  // whatever the number of ranks. Throws what the transport throws, and EnvironmentError for a message of an unexpected
  // length (ranks that run different configurations).
  bool advance(Transport& transport, SendBudget& budget);
  bool advance(Transport& transport);
  bool done() const { return base_ == steps_; }
  // Abandons every message in flight; waits for steps that helper threads are running.
  void cancel(Transport& transport, SendBudget& budget);

  std::optional<StepWait> wait() const;
  const WireCounters& wire() const { return wire_; }  // messages that this rank has sent for the plan

 private:
  enum class State : std::uint8_t { waiting, under_way, done };
  struct Entry {
    Step step;
    State state = State::waiting;
    Request request;
    std::size_t bytes = 0;             // length of the message, for a send
    bool helped = false;               // a copy or a sum that another thread makes
    int awaited = SharedSteps::kDone;  // for a step on shared memory: the rank that it waits for
    double since_s = 0;
  };

  Entry& entry(std::int64_t index) { return window_[static_cast<std::size_t>(index % window_size())]; }
  const Entry& entry(std::int64_t index) const { return window_[static_cast<std::size_t>(index % window_size())]; }
  std::int64_t window_size() const { return static_cast<std::int64_t>(window_.size()); }
  void fill_window();
  bool step_done(std::int64_t index) const { return index < base_ || entry(index).state == State::done; }
  bool may_start(const Entry& entry, const SendBudget& budget) const;
  void note_held_back(const Entry& entry);
  void begin(Entry& entry, Transport& transport, SendBudget& budget);
  bool hand_over(Entry& entry);
  bool run_shared(Entry& entry, Transport& transport);
  bool finish_if_done(Entry& entry, Transport& transport, SendBudget& budget);
  double raw_bytes(const Step& step) const {
    return static_cast<double>(step.range.elems()) * static_cast<double>(size_of(dtype_));
  }
  const Entry* overlapping_send(const Step& step) const;
  StepTask& task(const Entry& entry) { return tasks_[static_cast<std::size_t>(&entry - window_.data())]; }

  std::vector<Entry> window_;
  std::vector<StepTask> tasks_;  // by index in the window
  Help help_;
  int helped_ = 0;  // steps that helper threads run now
  std::shared_ptr<const Plan> plan_;
  PlanMemory memory_;
  Scratch own_scratch_;
  WireForm* form_ = nullptr;
  SharedSteps shared_;
  DType dtype_ = DType::f32;
  double sent_of_raw_ = 1;  // length of the newest message over that of its values
  int tag_ = 0;
  std::int64_t steps_ = 0, base_ = 0, loaded_ = 0;  // number; first that is not done; first not in the window
  std::vector<int> held_sends_, held_receives_;     // peers to or from which an earlier step did not start in this pass
  bool shared_held_ = false;                        // an earlier step on shared memory did not end in this pass
  WireCounters wire_;
};

}  // namespace echelon::inline comm
