// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/checkpoint.hpp"

#include <fmt/format.h>

#include <cmath>
#include <exception>
#include <filesystem>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/spans.hpp"
#include "base/text.hpp"
#include "config/goal.hpp"

namespace echelon::inline train {
namespace {

// Relative to the run's folder.
std::string place_of(const std::string& path) {
  return "checkpoints/" + std::filesystem::path(path).filename().string();
}

}  // namespace

CheckpointHook::CheckpointHook(const CheckpointConfig& config, const RunFolder& folder, CheckpointParts parts,
                               std::unique_ptr<CheckpointWriter> writer, Settle settle_records, Tell tell)
    : config_(config),
      folder_(folder),
      parts_(std::move(parts)),
      writer_(std::move(writer)),
      settle_records_(std::move(settle_records)),
      tell_(std::move(tell)) {}

void CheckpointHook::run_begin(std::int64_t first_step) {
  saved_step_ = seen_step_ = first_step;
  if (!writer_) return;
  if (leads()) name_best();
  writer_->expect(parts_.visit);
}

// `best` names that of the state, also where an attempt was killed between the two, or its newest ones are damaged.
void CheckpointHook::name_best() {
  const std::int64_t step = parts_.state.best.step;
  const std::string path = checkpoint_path(folder_.checkpoints(), step);
  const bool is_there = step >= 0 && std::filesystem::exists(path);
  if (step >= 0 && !is_there) log_warning("the best checkpoint, of step {}, no longer exists: {}", step, path);
  set_best(folder_.checkpoints(), is_there ? std::optional(step) : std::nullopt);
  parts_.board.set_best(is_there ? place_of(path) : "");
}

void CheckpointHook::take(const TestFigures& figures) {
  const GoalMetric metric = config_.keep_best;
  const double figure = goal_figure(metric, figures);
  if (std::isnan(figure)) return;
  BestCheckpoint& best = parts_.state.best;
  const bool first = best.step < 0 || best.metric != static_cast<std::int64_t>(metric);
  if (!first && !goal_is_better(metric, figure, best.figure)) return;
  best = {.metric = static_cast<std::int64_t>(metric), .step = best.step, .figure = figure};
  is_best_ = true;
}

void CheckpointHook::step_end(const StepRecord& record) {
  take_up();
  if (!record.meets) return;
  const bool due = config_.every_steps > 0 && record.step / config_.every_steps != seen_step_ / config_.every_steps;
  seen_step_ = record.step;
  // If replicas do not step together, others may have trained since, even if the furthest has not.
  if (!std::isnan(record.loss)) saved_step_ = -1;
  stopping_ = record.stopping;
  const bool needed = due || record.checkpoint_requested || record.stopping || is_best_;
  at_epoch_end_ = needed && record.ends_epoch;
  if (!needed || at_epoch_end_) return;
  save(record.step);
  if (stopping_) finish();
}

void CheckpointHook::epoch_end(EpochRecord& record) {
  if (record.tested()) take(record.test_figures());
  const bool due = config_.every_epochs > 0 && record.epoch % config_.every_epochs == 0;
  if (due || record.last || at_epoch_end_ || is_best_) save(record.step);
  if (record.last || stopping_) finish();
}

void CheckpointHook::save(std::int64_t step) {
  RunState& state = parts_.state;
  const bool is_best = std::exchange(is_best_, false);
  if (is_best) state.best.step = step;
  if (step == saved_step_) {
    if (is_best && leads()) finish(), name_best();
    return;
  }
  saved_step_ = step;
  parts_.phase.enter("checkpoint");
  const SpanScope span(SpanKind::checkpoint);
  parts_.strategy.drain();
  parts_.strategy.gather_state();
  GatheredTensors gathered = parts_.gather();
  if (writer_) {
    const Arenas& arenas = parts_.arenas;
    Device& device = parts_.arenas.device();
    const auto elems = static_cast<std::size_t>(arenas.elems());
    if (device.computes() &&
        device.vector_ops().count_not_finite(arenas.dtype(), parts_.arenas.weights_at(0), elems) > 0)
      throw NumericError(fmt::format("weights are inf or NaN after step {}; no checkpoint of them was written", step));
    if (leads()) state.records = settle_records_();
    writer_->save(step, parts_.visit, std::move(gathered), state.best.step);
    take_up();
  }
  parts_.phase.enter("hooks");
}

// Checkpoints that were completed since.
void CheckpointHook::take_up() {
  if (!writer_) return;
  for (const WrittenCheckpoint& one : writer_->take_written()) {
    ++written_;
    blocked_s_ += one.blocked_s, write_s_ += one.write_s;
    parts_.board.set_checkpoint(place_of(one.info.path));
    if (one.info.step == parts_.state.best.step) parts_.board.set_best(place_of(one.info.path));
    tell_({.step = one.info.step,
           .bytes = static_cast<double>(one.info.bytes),
           .blocked_s = one.blocked_s,
           .write_s = one.write_s});
    log_debug("checkpoint of step {} written in {}, of which training waited {}", one.info.step,
              seconds_text(one.write_s), seconds_text(one.blocked_s));
  }
}

void CheckpointHook::finish() {
  if (!writer_) return;
  parts_.phase.enter("checkpoint");
  writer_->finish();
  take_up();
  parts_.phase.enter("hooks");
}

void CheckpointHook::settle() {
  try {
    finish();
  } catch (const std::exception& error) {
    log_error("the checkpoint in progress was not written: {}", error.what());
  }
}

void CheckpointHook::add_to(RunFigures& figures) const {
  figures.checkpoints = written_, figures.checkpoint_blocked_s = blocked_s_, figures.checkpoint_write_s = write_s_;
  const BestCheckpoint& best = parts_.state.best;
  if (best.step < 0) return;
  figures.best_checkpoint = place_of(checkpoint_path(folder_.checkpoints(), best.step));
  figures.best_figure = best.figure;
}

}  // namespace echelon::inline train
