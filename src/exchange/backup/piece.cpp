// SPDX-License-Identifier: Apache-2.0
#include "exchange/backup/piece.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace echelon::inline exchange {

BackupPiece::BackupPiece(int workers, std::int64_t first_step)
    : step_(first_step), workers_(static_cast<std::size_t>(workers), Worker{.step = first_step}) {}

bool BackupPiece::arrived(int worker) {
  Worker& from = workers_.at(static_cast<std::size_t>(worker));
  if (from.old_step >= 0) {
    from.old_step = -1;
    return false;
  }
  ECHELON_CHECK(from.push == Push::expected, "worker {} pushes twice for step {}", worker, from.step);
  from.push = from.step == step_ ? Push::here : Push::dropped;
  return from.push == Push::here;
}

bool BackupPiece::has(const std::vector<int>& entered) const {
  return std::all_of(entered.begin(), entered.end(), [&](int worker) {
    const Worker& from = workers_.at(static_cast<std::size_t>(worker));
    return from.step == step_ && from.push == Push::here;
  });
}

std::vector<int> BackupPiece::close(const std::vector<int>& entered) {
  ECHELON_CHECK(has(entered), "gradients of step {} are missing", step_);
  ++step_;
  for (const int worker : entered) workers_[static_cast<std::size_t>(worker)] = {.step = step_};
  std::vector<int> free = entered;
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    if (workers_[w].step == step_ || workers_[w].push != Push::here) continue;
    workers_[w].push = Push::dropped;
    free.push_back(static_cast<int>(w));
  }
  return free;
}

void BackupPiece::join(int worker) {
  Worker& late = workers_.at(static_cast<std::size_t>(worker));
  ECHELON_CHECK_LT(late.step, step_, "worker {} joins the step that it is at", worker);
  ECHELON_CHECK(late.old_step < 0, "two pushes of worker {} are on their way", worker);
  late = {.step = step_, .push = Push::expected, .old_step = late.push == Push::expected ? late.step : -1};
}

bool BackupPiece::is_past(std::int64_t step) const {
  return std::all_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
    return worker.step >= step && (worker.old_step < 0 || worker.old_step >= step);
  });
}

}  // namespace echelon::inline exchange
