// SPDX-License-Identifier: Apache-2.0
#include "exchange/backup/traffic.hpp"

namespace echelon::inline exchange {

BackupTraffic::BackupTraffic(int workers, int servers, const std::vector<BackupBucket>& buckets, double value_bytes)
    : servers_(servers), of_worker_(static_cast<std::size_t>(workers)) {
  while (buckets.front().parts[static_cast<std::size_t>(coordinator_)].empty()) ++coordinator_;
  for (const BackupBucket& bucket : buckets)
    for (std::size_t rank = 0; rank < bucket.parts.size(); ++rank)
      for (std::size_t w = 0; w < of_worker_.size(); ++w)
        if (w != rank) of_worker_[w] += 2 * static_cast<double>(bucket.parts[rank].elems()) * value_bytes;
}

double BackupTraffic::bytes(double steps, const std::vector<BackupRounds::Count>& counts) const {
  const std::size_t workers = of_worker_.size();
  const auto command =
      static_cast<double>((servers_ - 1) * static_cast<int>(BackupProtocol::command_bytes(static_cast<int>(workers))));
  double bytes = steps * command;
  for (std::size_t w = 0; w < workers; ++w) {
    const BackupRounds::Count count =
        counts.empty() ? BackupRounds::Count{.entered = static_cast<std::int64_t>(steps)} : counts[w];
    const double control = static_cast<int>(w) == coordinator_ ? 0 : sizeof(BackupComplete) + sizeof(BackupVerdict);
    bytes += static_cast<double>(count.entered + count.dropped) * (of_worker_[w] + control) +
             static_cast<double>(count.dropped) * command;
  }
  return bytes;
}

}  // namespace echelon::inline exchange
