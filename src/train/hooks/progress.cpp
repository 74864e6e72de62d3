// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/progress.hpp"
#include "base/standard_output.hpp"
#include "base/text.hpp"

namespace echelon::inline train {
namespace {

constexpr double kDrawEvery_s = 0.2;
constexpr int kBarCells = 24;

// Nothing where there is none: a paced device computes no loss.
std::string loss_text(const char* name, double loss) {
  return std::isfinite(loss) ? fmt::format("  {} {:.4f}", name, loss) : std::string();
}

}  // namespace

std::string perplexity_text(double nats) { return fmt::format(" nats a token (perplexity {:.2f})", std::exp(nats)); }

ProgressHook::ProgressHook(const RunConfig& config, std::int64_t total_steps, std::int64_t total_epochs, bool own_pace)
    : heartbeat_s_(config.heartbeat_s), total_steps_(total_steps), total_epochs_(total_epochs), own_pace_(own_pace) {
  const ProgressStyle style = progress_style(config.progress);
  bar_ = style == ProgressStyle::bar;
  lines_ = style == ProgressStyle::lines;
}

void ProgressHook::run_begin(std::int64_t) {
  window_start_s_ = now_s();
  next_s_ = window_start_s_ + (bar_ ? kDrawEvery_s : heartbeat_s_);
}

std::string ProgressHook::epoch_text(std::int64_t epoch) const {
  return total_epochs_ > 0 ? fmt::format("epoch {}/{}", epoch, std::max(total_epochs_, epoch))
                           : fmt::format("epoch {}", epoch);
}

std::string ProgressHook::line(const StepRecord& record) const {
  const double seconds = std::max(1e-9, now_s() - window_start_s_);
  const bool of_tokens = record.tokens > 0;
  const double rate = (of_tokens ? window_tokens_ : window_samples_) / seconds;
  const double per_step_s = seconds / static_cast<double>(std::max<std::int64_t>(1, window_steps_));
  return fmt::format("step {}/{}  {}{}  {} {}/s{}  {} left", count_text(record.step), count_text(total_steps_),
                     epoch_text(record.epoch + 1), loss_text("loss", record.loss), rate_text(rate),
                     of_tokens ? "tokens" : "samples", own_pace_ ? " on rank 0" : "",
                     left_text(per_step_s * static_cast<double>(total_steps_ - record.step)));
}

void ProgressHook::draw(const StepRecord& record) {
  const double part = static_cast<double>(record.step) / static_cast<double>(total_steps_);
  draw_over_line(fmt::format("{} {:3.0f} %  {}", bar_text(part, kBarCells), 100 * part, line(record)));
  drawn_ = true;
}

void ProgressHook::wipe() {
  if (drawn_) draw_over_line("");
  drawn_ = false;
}

void ProgressHook::step_recorded(const StepRecord& record) {
  window_samples_ += record.samples;
  window_tokens_ += record.tokens;
  if (record.trained) ++window_steps_;
  if (!epoch_line_.empty()) {
    wipe();
    log_info("{}", epoch_line_);
    epoch_line_.clear();
  }
  const double now = now_s();
  if ((!bar_ && !lines_) || now < next_s_) return;
  if (bar_)
    draw(record);
  else
    log_info("{}", line(record));
  next_s_ = now + (bar_ ? kDrawEvery_s : heartbeat_s_);
  if (now - window_start_s_ < 2) return;  // rates of less are noise
  window_start_s_ = now;
  window_samples_ = window_tokens_ = 0;
  window_steps_ = 0;
}

// A resumed run counts the steps of all epochs by the data as they are now.
std::string ProgressHook::within_text(std::int64_t epoch) const {
  if (total_epochs_ == 0 || epoch < total_epochs_) return fmt::format("within epoch {}", epoch + 1);
  return fmt::format("beyond epoch {}, because the data have grown and {} now take more steps", epoch,
                     counted(total_epochs_, "epoch"));
}

void ProgressHook::epoch_end(EpochRecord& record) {
  epoch_line_ = (record.within ? within_text(record.epoch) : epoch_text(record.epoch)) +
                loss_text("train loss", record.train_loss);
  if (record.tested())
    epoch_line_ += fmt::format("  test loss {:.4f}{}", record.test_loss,
                               record.per_token ? perplexity_text(record.test_loss) : "");
  if (record.test_accuracy >= 0) epoch_line_ += fmt::format("  accuracy {:.2f} %", 100 * record.test_accuracy);
  epoch_line_ += fmt::format("  {}", seconds_text(record.seconds));
}

void ProgressHook::run_end(bool) { wipe(); }

}  // namespace echelon::inline train
