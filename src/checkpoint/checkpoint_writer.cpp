// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint_writer.hpp"

#include <chrono>
#include <exception>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"

namespace echelon::inline checkpoint {

CheckpointWriter::CheckpointWriter(std::string folder, const CheckpointConfig& config, SaveOptions save,
                                   std::optional<PartRanks> parts)
    : folder_(std::move(folder)), config_(config), save_(std::move(save)), parts_(parts) {
  save_.verify = config.verify;
}

CheckpointWriter::~CheckpointWriter() {
  try {
    finish();
  } catch (const std::exception& error) {
    log_error("the last checkpoint was not written: {}", error.what());
  }
}

std::optional<WrittenCheckpoint> CheckpointWriter::write(std::int64_t step, const VisitAll& visit,
                                                         const PartAgreement& agreed, std::int64_t best) const {
  const double start_s = now_s();
  const std::optional<CheckpointInfo> info =
      parts_ ? save_part(folder_, step, visit, agreed, *parts_, save_) : save_checkpoint(folder_, step, visit, save_);
  if (!info) return {};
  if (best == step) set_best(folder_, step);
  prune_checkpoints(folder_, config_.keep, best);
  return WrittenCheckpoint{.info = *info, .write_s = now_s() - start_s};
}

void CheckpointWriter::expect(const VisitAll& visit) {
  if (!config_.asynchronous) return;
  copy_.expect(visit);
  memory_ = std::async(std::launch::async, [this] { copy_.allocate(); });
}

void CheckpointWriter::save(std::int64_t step, const VisitAll& visit, GatheredTensors gathered, std::int64_t best) {
  finish();
  const double start_s = now_s();
  if (!config_.asynchronous) {
    const VisitAll shown = with_gathered(visit, gathered);
    PartAgreement agreed;
    if (parts_) agreed = begin_parts(folder_, step, shown, *parts_);
    if (auto written = write(step, shown, agreed, best)) {
      written->blocked_s = now_s() - start_s;
      written_.push_back(*written);
    }
    return;
  }
  if (memory_.valid()) memory_.get();
  copy_.take(visit, std::move(gathered));
  const VisitAll copy = [this](StateVisitor& visitor) { copy_.visit_state(visitor); };
  PartAgreement agreed;
  if (parts_) agreed = begin_parts(folder_, step, copy, *parts_);
  under_way_ =
      std::async(std::launch::async, [this, step, copy, agreed, best] { return write(step, copy, agreed, best); });
  blocked_s_ = now_s() - start_s;
}

void CheckpointWriter::finish() {
  if (!under_way_.valid()) return;
  const double start_s = now_s();
  if (auto written = under_way_.get()) {
    written->blocked_s = blocked_s_ + now_s() - start_s;
    written_.push_back(*written);
  }
}

std::vector<WrittenCheckpoint> CheckpointWriter::take_written() {
  if (under_way_.valid() && under_way_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) finish();
  return std::exchange(written_, {});
}

}  // namespace echelon::inline checkpoint
