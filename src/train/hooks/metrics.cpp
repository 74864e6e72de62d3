// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/metrics.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file_faults.hpp"
#include "report/figures_json.hpp"
#include "train/codec_record.hpp"
#include "train/control/calls.hpp"

namespace echelon::inline train {

using nlohmann::ordered_json;

namespace {

constexpr double kFlushEvery_s = 1;

RankTimes times_of(const std::vector<RankStep>& ranks) {
  RankTimes times;
  for (const RankStep& rank : ranks) {
    times.compute.push_back(rank.compute_s);
    times.exposed.push_back(rank.exposed_s);
    times.exchange.push_back(rank.exchange_s);
    times.wire_bytes.push_back(rank.wire_bytes);
  }
  return times;
}

StepFigures figures_of(const StepRecord& record, const StepTimes& times) {
  const double busy_s = times.training_s();
  const StepOutcome& outcome = record.outcome;
  StepFigures f;
  f.step = record.own_step;
  f.epoch = record.epoch;
  f.lr = record.learning_rate;
  f.loss = record.loss;
  f.samples = record.samples;
  f.samples_per_s = busy_s > 0 ? record.samples / busy_s : 0;
  f.time = times;
  if (outcome.exchange_busy_s > 0) {
    f.exchange_exposed_s = outcome.exchange_wait_s;
    f.exchange_hidden_s = std::max(0.0, outcome.exchange_busy_s - outcome.exchange_wait_s);
    f.wire_bytes = static_cast<double>(outcome.wire.bytes_sent);
  }
  if (record.arrival_skew_s > 0) f.arrival_skew_s = record.arrival_skew_s;
  if (!record.ranks.empty()) f.ranks_before = times_of(record.ranks);
  if (record.tokens > 0) {
    f.tokens = record.tokens;
    f.tokens_per_s = busy_s > 0 ? record.tokens / busy_s : 0;
  }
  if (outcome.gradient_norm >= 0) f.gradient_norm = outcome.gradient_norm;
  if (outcome.loss_scale != 1 || outcome.skipped) {
    f.loss_scale = outcome.loss_scale;
    f.skipped = outcome.skipped;
  }
  f.codec = figures_of(outcome.codec);
  if (record.drift >= 0) f.drift = record.drift;
  return f;
}

std::string row_text(const char* type, const ordered_json& figures) {
  ordered_json row = {{"type", type}};
  row.update(figures);
  return row.dump() + "\n";
}

}  // namespace

MetricsHook::MetricsHook(const std::string& path, std::int64_t every_steps, std::vector<std::string> metrics)
    : path_(path),
      every_steps_(every_steps),
      metrics_(std::move(metrics)),
      file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (file_ < 0) fail();
}

MetricsHook::~MetricsHook() { ::close(file_); }

void MetricsHook::fail() const {
  throw EnvironmentError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
}

void MetricsHook::flush() {
  for (std::size_t at = 0; at < rows_.size();) {
    const ssize_t wrote = write_some(file_, rows_.data() + at, rows_.size() - at);
    if (wrote < 0 && errno != EINTR) fail();
    if (wrote > 0) at += static_cast<std::size_t>(wrote);
  }
  rows_.clear();
  last_flush_s_ = now_s();
}

std::int64_t MetricsHook::settle() {
  if (step_) {
    if (step_->trained) write_step(*step_);
    step_ = nullptr;
  }
  write_epoch();
  flush();
  const off_t bytes = ::lseek(file_, 0, SEEK_END);
  if (bytes < 0) fail();
  return bytes;
}

void MetricsHook::sync() const {
  if (::fdatasync(file_) != 0 && errno != EINVAL) fail();
}

void MetricsHook::run_begin(std::int64_t first_step) { first_step_ = first_step; }

void MetricsHook::step_end(const StepRecord& record) {
  trained_ |= record.trained || record.step > first_step_ || (record.call & kMeetingEpoch) != 0;
  step_ = &record;
}

void MetricsHook::epoch_end(EpochRecord& record) {
  if (!trained_ && std::isnan(record.train_loss)) return;  // the attempt before wrote it
  EpochFigures f;
  f.epoch = record.epoch;
  f.step = record.step;
  f.train_loss = record.train_loss;
  if (record.tested()) f.test_loss = record.test_loss;
  if (record.test_accuracy >= 0) f.test_accuracy = record.test_accuracy;
  if (record.tested() && record.per_token) f.test_perplexity = std::exp(record.test_loss);
  if (record.classes.any()) take_class_figures(chosen_figures(record.classes.figures(), metrics_), f);
  take_value_figures(chosen_figures(record.values, metrics_), f);
  if (record.train_eval_loss >= 0) f.train_eval_loss = record.train_eval_loss;
  if (record.train_accuracy >= 0) f.train_accuracy = record.train_accuracy;
  f.seconds = record.seconds;
  epoch_row_ = row_text("epoch", to_json(f));
}

void MetricsHook::add_test(const char* type, const EpochFigures& figures) { rows_ += row_text(type, to_json(figures)); }

void MetricsHook::add_checkpoint(const CheckpointFigures& figures) {
  rows_ += row_text("checkpoint", to_json(figures));
}

void MetricsHook::write_step(const StepRecord& record) {
  StepTimes t = record.times;
  t += std::exchange(late_, {});
  if (!wants(record)) return;
  rows_ += row_text("step", to_json(figures_of(record, t)));
}

void MetricsHook::write_epoch() {
  rows_ += epoch_row_;
  epoch_row_.clear();
}

void MetricsHook::step_recorded(const StepRecord& record) {
  if (step_ && record.trained)
    write_step(record);
  else if (!step_)
    late_ = {.total_s = record.times.after_step_s(),
             .evaluation_s = record.times.evaluation_s,
             .checkpoint_s = record.times.checkpoint_s,
             .hooks_s = record.times.hooks_s};
  step_ = nullptr;
  const bool epoch = !epoch_row_.empty();
  write_epoch();
  if (epoch || now_s() - last_flush_s_ > kFlushEvery_s) flush();
}

void MetricsHook::run_end(bool) {
  write_epoch();
  flush();
}

}  // namespace echelon::inline train
