// SPDX-License-Identifier: Apache-2.0
// Batches of replicas without shards: each takes the next number of a DrawPlan when it needs one. The source decides
// who gets which number: a queue (draw_queue.hpp), or numbers that are dealt to replicas in turn (dealt_draws.hpp).
//
// A checkpoint holds the samples that are not trained (RunState::open); batches that replicas have drawn ahead count as
// not drawn. Another number of replicas cuts these samples into batches of its own size.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/group.hpp"
#include "data/draw_plan.hpp"

namespace echelon::inline train {

class BatchDraws : public DrawSource {
 public:
  const DrawPlan& plan() const override { return plan_; }
  // Returns what is open now, on rank 0; nothing elsewhere. At a meeting; collective over the workers, by replica.
  virtual std::vector<OpenSamples> gather(Group& workers) = 0;
  // Called at the end of a run, before all ranks leave it. Afterwards `next` returns none, and no message is in flight.
  virtual void close() { stop(); }
  // Called by the compute thread for each batch of this replica, in the order in which they were drawn.
  virtual void trained() { ++trained_; }
  // Returns the step of the run in which a batch is trained.
  std::int64_t step_of(const Draw& draw) const;

 protected:
  // `steps_per_epoch`, `total_steps`: of the run, whose first total_steps steps are drawn. DataError where `open` lists
  // samples that `records` does not have.
  BatchDraws(const SamplePlan& records, const std::vector<OpenSamples>& open, std::int64_t steps_per_epoch,
             std::int64_t total_steps);
  // The first number beyond the run's last step.
  std::int64_t end() const { return end_; }
  std::int64_t trained_so_far() const { return trained_; }

 private:
  DrawPlan plan_;
  std::int64_t steps_per_epoch_, end_ = 0;
  std::int64_t trained_ = 0;
};

}  // namespace echelon::inline train
