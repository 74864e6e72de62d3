// SPDX-License-Identifier: Apache-2.0
// Agreement of the ranks of a run beside the exchange: losses, signals, meetings. This is the loop's side of the
// control protocols (tree.hpp: the sum of a meeting; calls.hpp: meetings of asynchronous replicas; news.hpp: that
// somebody steps). How often ranks meet is the strategy's (exchange/progress.hpp).
#pragma once

#include <memory>
#include <mutex>

#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "exchange/progress.hpp"
#include "job/phase.hpp"
#include "train/control/calls.hpp"
#include "train/control/news.hpp"
#include "train/control/script.hpp"
#include "train/control/tree.hpp"

namespace echelon::inline train {

// Hears the news of steps (news.hpp), several times in hang_timeout_s; null: nobody does.
struct NewsHearer {
  PhaseBoard* phase = nullptr;
  double hang_timeout_s = 0;
};

class Control {
 public:
  static constexpr int kChannels = 6;
  // Times of ranks are sent to rank 0 with one sum in several: of 64 ranks a meeting on average.
  static int steps_between_times(int ranks);
  // `channel` and the next kChannels - 1, on all ranks of the engine. It outlives this, and so does the hearer; all
  // ranks have one or none. `script`, on all ranks alike or on none: replaces the calls of asynchronous replicas;
  // unless its last meeting ends the run, all stop there. `replica`: of a split model, the ranks that step together;
  // null: this rank steps by itself. It outlives this.
  Control(Engine& world, int channel, const Progress& progress = {}, MeetingScript script = {}, NewsHearer hearer = {},
          Group* replica = nullptr);
  ~Control();

  const Progress& progress() const { return progress_; }
  const Clock& clock() const { return world_.clock(); }

  // A step's losses and wishes enter the sum of the next meeting. `meets`: the ranks meet after this step, known before
  // it: the sum begins at once, ahead of whatever else the engine sends.
  void add(const ControlWords& words, bool meets);
  // This rank has done a step.
  void stepped();
  // For asynchronous replicas: this rank has done all its steps.
  void finished();
  // For asynchronous replicas: why the next meeting was called (MeetingReason); 0 if none was. `steps`: those that this
  // rank has trained since this object was made.
  std::uint32_t called(std::int64_t steps) const;
  // The same on all ranks of the replica, which all ask after the same step: its first rank decides, so that they go on
  // or come to a meeting together though its call reaches them one after another.
  std::uint32_t called_together(std::int64_t steps);
  // For asynchronous replicas, on rank 0: the total weight, over all replicas since this object was made, at which the
  // next epoch ends (`last`: and the run), and the next warm-up (0: never).
  void set_epoch_weight(double weight, bool last);
  void set_join_weight(double weight);

  // Every rank: the sum over all ranks of what was added since the last meeting. Returns once all ranks are there;
  // throws what ended the engine.
  const ControlSum& meet();
  // Returns once what this rank has passed on of the last sum has left: before a rank ends that others wait for.
  void flush();
  // On rank 0, at the same meeting: the times of each rank in the step before. Empty elsewhere, and in most steps if
  // there are many ranks.
  const std::vector<RankStep>& times() const { return tree_.times(); }

 private:
  // A machine on the engine, and the ticket of what it tells next.
  class Attached : private ProtocolHost {
   public:
    explicit Attached(Engine& world) : world_(world) {}
    // Once, before anything else.
    void attach(Machine& machine) { attachment_ = world_.attach(machine, *this); }
    // Both throw what ended the machine.
    Ticket expect();
    void check() const;
    void post(Token token) { attachment_->post(token); }

   protected:
    // On the thread that drives, within the lock.
    virtual void heard() {}
    mutable std::mutex mutex_;
    std::exception_ptr error_;  // that ended the machine

   private:
    void on_notified(Token token, double now_s) override;
    void failed(std::exception_ptr error) override;

    Engine& world_;
    Promise promise_;
    std::unique_ptr<Attachment> attachment_;  // ends first
  };
  class Caller;
  class Teller;

  void begin();
  void report();

  Engine& world_;
  Progress progress_;
  ControlTree tree_;
  ControlWords words_;  // since the last meeting
  Report totals_;       // of this rank
  MeetingWeights weights_;
  MeetingScript script_;
  Group* replica_;
  std::size_t met_ = 0;  // meetings of the script
  Ticket sum_;           // of the meeting under way; not valid: it has not begun
  Attached sums_;
  std::unique_ptr<Caller> calls_;  // null where nobody calls
  std::unique_ptr<Teller> news_;   // null where nobody tells
};

}  // namespace echelon::inline train
