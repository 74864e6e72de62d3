// SPDX-License-Identifier: Apache-2.0
#include "train/draw_queue.hpp"

namespace echelon::inline train {

DrawQueue::DrawQueue(Engine& workers, int channel, const SamplePlan& records, const std::vector<OpenSamples>& open,
                     std::int64_t steps_per_epoch, std::int64_t total_steps)
    : BatchDraws(records, open, steps_per_epoch, total_steps),
      machine_(workers.rank(), workers.size(), channel, end()) {
  attachment_ = workers.attach(machine_, *this);
}

DrawQueue::~DrawQueue() = default;

std::vector<OpenSamples> DrawQueue::gather(Group& workers) {
  std::vector<std::int64_t> trained, held;
  for (const double one : workers.gather(static_cast<double>(trained_so_far())))
    trained.push_back(static_cast<std::int64_t>(one));
  std::vector<OpenSamples> open;
  if (workers.rank() == 0) {
    const std::int64_t next = machine_.untrained(trained, held);
    open = plan().open_after(next, held);
  }
  workers.barrier();  // until here nobody trains, and tells the queue of more than it gathered
  return open;
}

std::optional<std::int64_t> DrawQueue::next() {
  {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    if (stopped_ || over_) return {};
    waiting_ = true;
  }
  attachment_->post(DrawMachine::kDraw);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !waiting_ || stopped_ || error_; });
  if (error_) std::rethrow_exception(error_);
  if (waiting_) return {};
  over_ = drawn_ == DrawMachine::kNone;
  return over_ ? std::nullopt : std::optional(drawn_);
}

void DrawQueue::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

void DrawQueue::close() {
  stop();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !waiting_ || error_; });
}

void DrawQueue::trained() {
  BatchDraws::trained();
  machine_.set_trained(trained_so_far());
}

void DrawQueue::on_notified(Token, double) {
  const std::lock_guard lock(mutex_);
  drawn_ = machine_.drawn();
  waiting_ = false;
  changed_.notify_all();
}

void DrawQueue::failed(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = error;
  changed_.notify_all();
}

}  // namespace echelon::inline train
