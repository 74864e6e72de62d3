// data.balance = "queue": the queue of an attempt's batches on one worker; rank 0 of the workers keeps it
// (control/draws.hpp). What a number stands for is data/draw_plan.hpp.
//
// A checkpoint holds what is not trained: batches that replicas have drawn ahead count as not drawn. Another number of
// replicas cuts it into batches of its own size.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/state.hpp"
#include "checkpoint/run_state.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "data/draw_plan.hpp"
#include "train/control/draws.hpp"

namespace echelon::inline train {

class DrawQueue final : public DrawSource, private ProtocolHost {
 public:
  static constexpr int kChannels = 2;

  // `channel` and the next one, on all ranks of the engine: the workers, by replica. Both outlive it. Batches of the
  // run's first `total_steps` steps.
  DrawQueue(Engine& workers, int channel, const SamplePlan& shards, std::int64_t total_steps);
  ~DrawQueue() override;

  // The samples that are still to be trained. Before a save `gather`, after a load `begin`.
  void visit_state(StateVisitor& visitor);
  // From the position of a run of which no queue is known (another strategy's, or the first step): begins there.
  // `visited`: visit_state has loaded. Once, on all ranks.
  void begin(const RunState& state, bool visited);
  // At a meeting, collective over the workers: on rank 0 visit_state then shows what is open.
  void gather(Group& workers);

  // By the loader's thread.
  const DrawPlan& plan() const override { return *plan_; }
  std::optional<std::int64_t> next() override;
  void stop() override;

  // At the end of a run, before all ranks leave it: `next` returns none, and no message is under way.
  void close();

  // By the compute thread: the batches of this replica are trained in the order in which they were drawn.
  void trained();
  // What the run's step is while a batch is trained.
  std::int64_t step_of(const Draw& draw) const { return draw.epoch * steps_per_epoch_ + draw.step_in_epoch; }

 private:
  std::int64_t end() const;
  void on_notified(Token token, double now_s) override;
  void failed(std::exception_ptr error) override;

  Engine& workers_;
  int channel_;
  const SamplePlan& shards_;
  std::int64_t steps_per_epoch_, total_steps_;
  std::vector<OpenSamples> open_;
  std::int64_t trained_ = 0;
  std::optional<DrawPlan> plan_;
  std::optional<DrawMachine> machine_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  bool waiting_ = false, stopped_ = false, over_ = false;
  std::int64_t drawn_ = DrawMachine::kNone;
  std::exception_ptr error_;
  std::unique_ptr<Attachment> attachment_;  // ends first
};

}  // namespace echelon::inline train
