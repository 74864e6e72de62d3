// SPDX-License-Identifier: Apache-2.0
// Passes the order of arrivals, at the parts that a rank of an asynchronous parameter server serves, from the protocol
// to the file of the attempt (ledger_file.hpp).
#include <algorithm>
#include <utility>

#include "exchange/asynchronous/strategy.hpp"

namespace echelon::inline exchange {

std::int64_t AsyncStrategy::pieces_served() const {
  if (alone()) return 0;
  return std::count_if(buckets_.begin(), buckets_.end(), [](const Bucket& bucket) { return bucket.own.elems() > 0; });
}

std::vector<LedgerBytes> AsyncStrategy::take_ledgers() {
  const std::lock_guard lock(mutex_);
  std::vector<LedgerBytes> taken(ledgers_.size());
  std::swap(taken, ledgers_);
  return taken;
}

// Runs on the thread that drives the engine, with mutex_ locked.
void AsyncStrategy::keep_ledger(int b) {
  const LedgerBytes taken = protocol_->take_ledger(b);
  LedgerBytes& kept = ledgers_[static_cast<std::size_t>(b)];
  kept.insert(kept.end(), taken.begin(), taken.end());
}

}  // namespace echelon::inline exchange
