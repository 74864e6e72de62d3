// SPDX-License-Identifier: Apache-2.0
// Adds up what the summary of an attempt needs. Every rank.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "train/hooks/hook.hpp"
#include "train/rate_record.hpp"
#include "train/trained_batches.hpp"

namespace echelon::inline train {

// The first `warmup_steps` (at least 1) of the attempt warm caches and build what is built once: rates and quartiles
// leave them out, if there are others. Sums begin with the last of them, which is step 1 if nothing else is asked for;
// the time before it is warmup_s. A rank that has done all its steps waits for the others: that time is in the sums.
class StatisticsHook final : public Hook {
 public:
  // `uncoded_steps`: of the run, behind which messages have their final form.
  explicit StatisticsHook(std::int64_t warmup_steps = 1, TrainedBatches batches = TrainedBatches(),
                          std::int64_t uncoded_steps = 0)
      : warmup_steps_(warmup_steps), uncoded_steps_(uncoded_steps), batches_(std::move(batches)) {}

  void step_end(const StepRecord& record) override;
  void epoch_end(EpochRecord& record) override;
  void step_recorded(const StepRecord& record) override;

  std::int64_t steps() const { return steps_; }  // that this rank took
  // And those that it left out because it came too late.
  std::int64_t steps_of_run() const { return steps_ + steps_left_out_; }
  std::int64_t steps_in_sums() const { return steps_ - steps_before_sums_; }
  std::int64_t steps_before_sums() const { return steps_before_sums_; }
  double warmup_s() const { return warmup_s_; }  // of these, hooks included
  std::int64_t gradients_dropped() const { return gradients_dropped_; }
  std::int64_t samples_dropped() const { return samples_dropped_; }
  const StepTimes& times() const { return sums_.times; }
  double exposed_s() const { return sums_.exposed_s; }  // the compute thread blocked on the exchange, in all
  double busy_s() const { return sums_.busy_s; }        // the exchange under way, hidden and exposed, in all
  double codec_s() const { return sums_.codec_s; }      // of it, encoding and decoding
  double skew_s() const { return sums_.skew_s; }        // StepRecord::arrival_skew_s, in all
  double skew_wait_s() const { return sums_.skew_wait_s; }
  // The codec over the steps in which it encoded: bytes are sums, `residual_norm` is the newest, the rest are means.
  CodecRecord codec() const;
  double first_step_s() const { return first_step_s_; }  // from since_run_start_s's start to the end of the first step
  const EpochRecord& newest_epoch() const { return epoch_; }  // with the newest test figures
  double newest_loss() const { return loss_; }
  const std::vector<LossSums>& own_losses() const { return own_losses_; }  // StepRecord::own by step

  const std::vector<GradientSquares>& squares() const {
    return squares_;
  }  // StepOutcome::squares by step, if they are measured
  double drift() const { return drifts_ > 0 ? drift_ / static_cast<double>(drifts_) : -1; }  // mean over meetings
  // Sent for gradients in a step, behind all warm-ups: of caches, of the codec, with few replicas. -1: no such step.
  double warm_wire_bytes() const { return warm_steps_ > 0 ? warm_wire_bytes_ / static_cast<double>(warm_steps_) : -1; }

  const RateRecord& rate() const { return rate_; }
  double warm_s() const { return rate_.warm_s(warmup_steps_); }
  double samples_in_sums() const { return sums_.samples; }  // that entered the model
  const TrainedBatches& batches() const { return batches_; }

  // Leaves out the warm-up and hooks.
  Quartiles step_s() const;
  double allocations_per_step() const;  // least, which depends on no timing
  double allocated_bytes_per_step() const;
  std::int64_t measured_steps() const;

 private:
  std::vector<double> measured(const std::vector<double>& all) const;

  void add(const CodecRecord& codec);

  struct Sums {
    StepTimes times;
    double exposed_s = 0, busy_s = 0, codec_s = 0, skew_s = 0, skew_wait_s = 0, samples = 0;
  };

  std::int64_t warmup_steps_, steps_ = 0, steps_before_sums_ = 0, coded_steps_ = 0;
  std::int64_t steps_left_out_ = 0, gradients_dropped_ = 0, samples_dropped_ = 0;
  Sums sums_;
  double warmup_s_ = 0;
  CodecRecord codec_{.density = 0};  // sums
  double first_step_s_ = 0;
  double loss_ = 0;
  std::vector<LossSums> own_losses_;
  std::vector<GradientSquares> squares_;
  double drift_ = 0;  // sum
  std::int64_t drifts_ = 0;
  double warm_wire_bytes_ = 0;  // sum
  std::int64_t uncoded_steps_, warm_steps_ = 0;
  EpochRecord epoch_;
  RateRecord rate_;
  TrainedBatches batches_;
  std::vector<double> seconds_;
  std::vector<double> allocations_, allocated_bytes_;
};

}  // namespace echelon::inline train
