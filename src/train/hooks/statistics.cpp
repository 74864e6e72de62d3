// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/statistics.hpp"

#include <algorithm>

#include "job/launch.hpp"

namespace echelon::inline train {
namespace {

double least(const std::vector<double>& all) { return all.empty() ? 0 : *std::min_element(all.begin(), all.end()); }

}  // namespace

void StatisticsHook::step_end(const StepRecord& record) {
  if (record.trained && steps_ == 0) first_step_s_ = since_run_start_s();
}

void StatisticsHook::epoch_end(EpochRecord& record) {
  const EpochRecord before = epoch_;
  epoch_ = record;
  if (!record.tested()) {
    epoch_.test_loss = before.test_loss;
    epoch_.test_accuracy = before.test_accuracy;
    epoch_.train_eval_loss = before.train_eval_loss;
    epoch_.train_accuracy = before.train_accuracy;
    epoch_.classes = before.classes;
  }
}

void StatisticsHook::step_recorded(const StepRecord& record) {
  rate_.add(record);
  if (record.drift >= 0) drift_ += record.drift, ++drifts_;
  const StepTimes& t = record.times;
  if (!record.trained) {
    sums_.times += t;
    return;
  }
  batches_.add(record);
  if (++steps_ == warmup_steps_ && steps_ > 1) {
    warmup_s_ = sums_.times.total_s;
    steps_before_sums_ = steps_ - 1;
    sums_ = {};
  }
  steps_left_out_ += record.steps_left_out;
  gradients_dropped_ += record.outcome.contributed ? 0 : 1;
  samples_dropped_ += record.dropped_samples;
  sums_.times += t;
  sums_.samples += record.entered_samples;
  sums_.exposed_s += record.outcome.exchange_wait_s;
  sums_.busy_s += record.outcome.exchange_busy_s;
  sums_.skew_s += record.arrival_skew_s;
  sums_.skew_wait_s += record.skew_wait_s;
  // A step may send what the one before has left.
  if (steps_ > warmup_steps_ && record.step > uncoded_steps_ + 1) {
    ++warm_steps_;
    warm_wire_bytes_ += static_cast<double>(record.outcome.wire.bytes_sent);
  }
  add(record.outcome.codec);
  const GradientSquares& squares = record.outcome.squares;
  if (squares.own_inverse > 0 || squares.mean_inverse > 0) squares_.push_back(squares);
  loss_ = record.loss;
  own_losses_.push_back(record.own);
  const double busy_s = std::max(1e-12, t.training_s());
  seconds_.push_back(busy_s);
  allocations_.push_back(static_cast<double>(record.allocated.calls));
  allocated_bytes_.push_back(static_cast<double>(record.allocated.bytes));
}

void StatisticsHook::add(const CodecRecord& codec) {
  if (codec.bytes_before == 0) return;  // nothing was coded in this step
  ++coded_steps_;
  codec_.bytes_before += codec.bytes_before;
  codec_.bytes_after += codec.bytes_after;
  codec_.seconds += codec.seconds;
  sums_.codec_s += codec.seconds;
  codec_.lossy = codec.lossy;
  codec_.density += codec.density;
  codec_.tau += codec.tau;
  codec_.residual_norm = codec.residual_norm;
}

CodecRecord StatisticsHook::codec() const {
  CodecRecord mean = codec_;
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, coded_steps_));
  mean.density = codec_.density / steps;
  mean.tau /= steps;
  return mean;
}

std::vector<double> StatisticsHook::measured(const std::vector<double>& all) const {
  const std::ptrdiff_t most = std::max<std::ptrdiff_t>(0, std::ssize(all) - 1);
  const std::ptrdiff_t warm = std::ssize(all) >= warmup_steps_ ? warmup_steps_ : 1;
  return {all.begin() + std::min(warm, most), all.end()};
}

double StatisticsHook::allocations_per_step() const { return least(measured(allocations_)); }
double StatisticsHook::allocated_bytes_per_step() const { return least(measured(allocated_bytes_)); }
Quartiles StatisticsHook::step_s() const { return quartiles_of(measured(seconds_)); }
std::int64_t StatisticsHook::measured_steps() const { return static_cast<std::int64_t>(measured(seconds_).size()); }

}  // namespace echelon::inline train
