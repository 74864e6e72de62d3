#include "train/draw_queue.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/error.hpp"

namespace echelon::inline train {

DrawQueue::DrawQueue(Engine& workers, int channel, const SamplePlan& shards, std::int64_t total_steps)
    : workers_(workers),
      channel_(channel),
      shards_(shards),
      steps_per_epoch_(shards.steps_per_epoch()),
      total_steps_(total_steps) {}

DrawQueue::~DrawQueue() = default;

void DrawQueue::visit_state(StateVisitor& visitor) {
  auto ranges = static_cast<std::int64_t>(open_.size());
  visitor.scalar("strategy_open_ranges", ranges);
  open_.resize(static_cast<std::size_t>(ranges));
  if (ranges == 0) return;
  std::vector<double> rows;
  for (const OpenSamples& range : open_)
    for (const std::int64_t number : {range.epoch, range.first, range.end}) rows.push_back(static_cast<double>(number));
  visitor.tensor({.name = "draws/open",
                  .data = rows.data(),
                  .dtype = DType::f64,
                  .shape = {ranges, 3},
                  .placement = Placement::replicated,
                  .global_shape = {},
                  .offset = {}});
  for (std::size_t i = 0; visitor.loading() && i < open_.size(); ++i)
    open_[i] = {.epoch = static_cast<std::int64_t>(rows[3 * i]),
                .first = static_cast<std::int64_t>(rows[3 * i + 1]),
                .end = static_cast<std::int64_t>(rows[3 * i + 2])};
}

void DrawQueue::begin(const RunState& state, bool visited) {
  const std::int64_t samples = shards_.samples();
  if (!visited || open_.empty())
    open_ = {{.epoch = state.epoch,
              .first = std::min(samples, state.step_in_epoch * shards_.global_batch()),
              .end = samples}};
  if (std::any_of(open_.begin(), open_.end(), [&](const OpenSamples& range) { return range.end > samples; }))
    throw DataError(
        "the checkpoint lists samples beyond those of data.train, which has changed; run.restart = "
        "\"never\" begins anew");
  plan_.emplace(shards_, open_);
  machine_.emplace(workers_.rank(), workers_.size(), channel_, end());
  attachment_ = workers_.attach(*machine_, *this);
}

// The first number beyond the run's last step: steps grow with numbers.
std::int64_t DrawQueue::end() const {
  std::int64_t low = 0, high = 1;
  const auto in_run = [&](std::int64_t number) { return step_of(plan_->at(number)) < total_steps_; };
  while (in_run(high - 1)) high *= 2;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (in_run(middle))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void DrawQueue::gather(Group& workers) {
  std::vector<std::int64_t> trained, held;
  for (const double one : workers.gather(static_cast<double>(trained_)))
    trained.push_back(static_cast<std::int64_t>(one));
  if (workers_.rank() != 0) return;
  const std::int64_t next = machine_->untrained(trained, held);
  open_ = plan_->open_after(next, held);
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

void DrawQueue::trained() { machine_->set_trained(++trained_); }

void DrawQueue::on_notified(Token, double) {
  const std::lock_guard lock(mutex_);
  drawn_ = machine_->drawn();
  waiting_ = false;
  changed_.notify_all();
}

void DrawQueue::failed(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = error;
  changed_.notify_all();
}

}  // namespace echelon::inline train
