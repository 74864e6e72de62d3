// SPDX-License-Identifier: Apache-2.0
// The bytes of steps with backup workers, by formula. Each worker that takes a step pushes its gradients, pulls
// weights, and informs the coordinator, which sends commands to the other servers.
#pragma once

#include <vector>

#include "exchange/backup/protocol.hpp"

namespace echelon::inline exchange {

class BackupTraffic {
 public:
  // `buckets` must have all parts; each value takes `value_bytes`.
  BackupTraffic(int workers, int servers, const std::vector<BackupBucket>& buckets, double value_bytes);

  // The bytes that all ranks together send in `steps` steps. `counts` is by worker; empty: all gradients entered.
  double bytes(double steps, const std::vector<BackupRounds::Count>& counts) const;

 private:
  int servers_, coordinator_ = 0;
  std::vector<double> of_worker_;  // both directions, per step that it takes
};

}  // namespace echelon::inline exchange
