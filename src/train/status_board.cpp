#include "train/status_board.hpp"

#include <fmt/format.h>

#include "base/atomic_file.hpp"

namespace echelon {

void StatusBoard::open(const RunFolder& folder, const Provenance& provenance) {
  const std::lock_guard lock(mutex_);
  folder_ = folder;
  provenance_ = provenance;
}

void StatusBoard::set_checkpoint(const std::string& newest) {
  const std::lock_guard lock(mutex_);
  checkpoint_ = newest;
}

std::string StatusBoard::checkpoint() const {
  const std::lock_guard lock(mutex_);
  return checkpoint_;
}

bool StatusBoard::is_open() const {
  const std::lock_guard lock(mutex_);
  return !folder_.attempt.empty();
}

void StatusBoard::write(const std::string& state, int exit_code, const std::string& reason, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  if (folder_.attempt.empty()) return;
  write_status(folder_, {state, exit_code, reason, step, checkpoint_, provenance_.ranks}, provenance_);
}

void StatusBoard::write_rank_error(int rank, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (folder_.attempt.empty() || rank == 0) return;
  write_file_whole(fmt::format("{}/rank-{:04}.err", folder_.attempt, rank), text + "\n");
}

}  // namespace echelon
