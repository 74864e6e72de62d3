// SPDX-License-Identifier: Apache-2.0
#include "exchange/backup/rounds.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace echelon::inline exchange {

BackupRounds::BackupRounds(int workers, int needed, std::int64_t first_step, Owner& owner)
    : workers_(workers),
      needed_(needed),
      step_(first_step),
      owner_(owner),
      next_(static_cast<std::size_t>(workers), first_step),
      counts_(static_cast<std::size_t>(workers)) {
  ECHELON_CHECK_GE(needed, 1, "replicas that a step waits for");
  ECHELON_CHECK_LE(needed, workers, "replicas that a step waits for");
}

void BackupRounds::completed(int worker, const BackupComplete& complete) {
  std::int64_t& next = next_.at(static_cast<std::size_t>(worker));
  ECHELON_CHECK_EQ(complete.step, next, "step that worker {} completes", worker);
  next = -1;  // until a verdict
  if (complete.step < step_) return join(worker);
  arrivals_.push_back({worker, complete});
  if (is_full()) close();
}

bool BackupRounds::is_full() const {
  const int came = static_cast<int>(arrivals_.size());
  const auto has_samples = [](const Arrival& arrival) { return arrival.complete.weight > 0; };
  return came == workers_ || (came >= needed_ && std::any_of(arrivals_.begin(), arrivals_.end(), has_samples));
}

void BackupRounds::close() {
  std::vector<Arrival> came = std::exchange(arrivals_, {});
  // More than `needed_` came only if those before the newest had no samples.
  std::swap(came[static_cast<std::size_t>(needed_ - 1)], came.back());
  const auto end = came.begin() + needed_;
  std::sort(came.begin(), end, [](const Arrival& a, const Arrival& b) { return a.worker < b.worker; });
  BackupCommand command{.step = step_, .learning_rate = came.front().complete.learning_rate, .entered = {}};
  double weight = 0;
  for (auto arrival = came.begin(); arrival != end; ++arrival) {
    command.entered.push_back(arrival->worker);
    weight += arrival->complete.weight;
  }
  // The weights of all workers add up to the whole, whatever their sum rounds to.
  if (needed_ < workers_ && weight > 0) command.factor = came.front().complete.whole / weight;
  owner_.decided(command);
  ++step_;
  for (const int worker : command.entered) {
    ++counts_[static_cast<std::size_t>(worker)].entered;
    next_[static_cast<std::size_t>(worker)] = step_;
    owner_.decided(worker, {.next_step = step_, .entered = 1});
  }
  for (auto late = end; late != came.end(); ++late) join(late->worker);
}

void BackupRounds::join(int worker) {
  ++counts_[static_cast<std::size_t>(worker)].dropped;
  next_[static_cast<std::size_t>(worker)] = step_;
  owner_.decided({.step = step_, .joins = worker, .entered = {}});
  owner_.decided(worker, {.next_step = step_, .entered = 0});
}

}  // namespace echelon::inline exchange
