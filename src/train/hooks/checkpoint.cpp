#include "train/hooks/checkpoint.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/spans.hpp"
#include "base/text.hpp"

namespace echelon::inline train {

CheckpointHook::CheckpointHook(const CheckpointConfig& config, const RunFolder& folder, bool writes, VisitAll visit,
                               std::function<WholeTensors()> gather, Arenas& arenas, Strategy& strategy,
                               PhaseBoard& phase, StatusBoard& board, std::string training_data,
                               std::function<void()> settle_records)
    : config_(config),
      folder_(folder),
      writes_(writes),
      visit_(std::move(visit)),
      gather_(std::move(gather)),
      arenas_(arenas),
      strategy_(strategy),
      phase_(phase),
      board_(board),
      training_data_(std::move(training_data)),
      settle_records_(std::move(settle_records)) {}

void CheckpointHook::step_end(const StepRecord& record) {
  if (!record.meets) return;
  const bool due = config_.every_steps > 0 && record.step / config_.every_steps != seen_step_ / config_.every_steps;
  seen_step_ = record.step;
  // Where replicas do not step together others may have trained since, though the furthest has not.
  if (!std::isnan(record.loss)) saved_step_ = -1;
  const bool wanted = due || record.checkpoint_wanted || record.stopping;
  at_epoch_end_ = wanted && record.ends_epoch;
  if (wanted && !at_epoch_end_) save(record.step);
}

void CheckpointHook::epoch_end(EpochRecord& record) {
  const bool due = config_.every_epochs > 0 && record.epoch % config_.every_epochs == 0;
  if (due || record.last || at_epoch_end_) save(record.step);
}

void CheckpointHook::save(std::int64_t step) {
  if (step == saved_step_) return;
  saved_step_ = step;
  phase_.enter("checkpoint");
  const SpanScope span(SpanKind::checkpoint);
  strategy_.drain();
  strategy_.gather_state();
  const WholeTensors wholes = gather_();
  if (writes_) {
    const double start_s = now_s();
    Device& device = arenas_.device();
    const auto elems = static_cast<std::size_t>(arenas_.elems());
    if (device.computes() && device.vector_ops().count_not_finite(arenas_.dtype(), arenas_.weights_at(0), elems) > 0)
      throw NumericError(fmt::format("weights are inf or NaN after step {}; no checkpoint of them was written", step));
    if (settle_records_) settle_records_();
    const CheckpointInfo info = save_checkpoint(folder_.checkpoints(), step, visit_, wholes, training_data_);
    prune_checkpoints(folder_.checkpoints(), config_.keep);
    board_.set_checkpoint("checkpoints/" + std::filesystem::path(info.path).filename().string());
    log_debug("checkpoint of step {} in {}", step, seconds_text(now_s() - start_s));
  }
  phase_.enter("hooks");
}

}  // namespace echelon::inline train
