#include "checkpoint/checkpoint_writer.hpp"

#include <chrono>
#include <exception>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"

namespace echelon::inline checkpoint {

CheckpointWriter::CheckpointWriter(std::string folder, const CheckpointConfig& config, SaveOptions save)
    : folder_(std::move(folder)), config_(config), save_(std::move(save)) {
  save_.verify = config.verify;
}

CheckpointWriter::~CheckpointWriter() {
  try {
    finish();
  } catch (const std::exception& error) {
    log_error("the last checkpoint was not written: {}", error.what());
  }
}

WrittenCheckpoint CheckpointWriter::write(std::int64_t step, const VisitAll& visit, const WholeTensors& wholes,
                                          std::int64_t best) const {
  const double start_s = now_s();
  WrittenCheckpoint written;
  written.info = save_checkpoint(folder_, step, visit, wholes, save_);
  if (best == step) set_best(folder_, step);
  prune_checkpoints(folder_, config_.keep, best);
  written.write_s = now_s() - start_s;
  return written;
}

void CheckpointWriter::expect(const VisitAll& visit) {
  if (!config_.asynchronous) return;
  copy_.expect(visit);
  memory_ = std::async(std::launch::async, [this] { copy_.allocate(); });
}

void CheckpointWriter::save(std::int64_t step, const VisitAll& visit, WholeTensors wholes, std::int64_t best) {
  finish();
  const double start_s = now_s();
  if (!config_.asynchronous) {
    written_.push_back(write(step, visit, wholes, best));
    written_.back().blocked_s = written_.back().write_s;
    return;
  }
  if (memory_.valid()) memory_.get();
  copy_.take(visit, std::move(wholes));
  under_way_ = std::async(std::launch::async, [this, step, best] {
    return write(
        step, [this](StateVisitor& visitor) { copy_.visit_state(visitor); }, {}, best);
  });
  blocked_s_ = now_s() - start_s;
}

void CheckpointWriter::finish() {
  if (!under_way_.valid()) return;
  const double start_s = now_s();
  written_.push_back(under_way_.get());
  written_.back().blocked_s = blocked_s_ + now_s() - start_s;
}

std::vector<WrittenCheckpoint> CheckpointWriter::take_written() {
  if (under_way_.valid() && under_way_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) finish();
  return std::exchange(written_, {});
}

}  // namespace echelon::inline checkpoint
