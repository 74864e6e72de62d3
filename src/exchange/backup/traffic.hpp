// Bytes of steps with backup workers, by formula: each worker that takes a step pushes its gradients and pulls weights,
// and tells the coordinator, which commands the other servers.
#pragma once

#include <vector>

#include "exchange/backup/protocol.hpp"

namespace echelon::inline exchange {

class BackupTraffic {
 public:
  // All parts of `buckets`, whose values have so many bytes.
  BackupTraffic(int workers, int servers, const std::vector<BackupBucket>& buckets, double value_bytes);

  // Of `steps` steps, all ranks together. `counts`: by worker; empty: all gradients entered.
  double bytes(double steps, const std::vector<BackupRounds::Count>& counts) const;

 private:
  int servers_, coordinator_ = 0;
  std::vector<double> of_worker_;  // both ways, of a step that it takes
};

}  // namespace echelon::inline exchange
