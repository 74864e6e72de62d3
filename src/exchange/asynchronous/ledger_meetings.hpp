// The meetings in the order of arrivals of one piece: after how many updates of each worker, and where each is over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exchange/asynchronous/ledger.hpp"

namespace echelon::inline exchange {

struct LedgerMeeting {
  std::vector<std::int64_t> updates;  // by worker: that it had pushed of the piece when it came
  std::size_t end = 0;                // byte after the last worker's entry

  friend bool operator==(const LedgerMeeting&, const LedgerMeeting&) = default;
};

// Those to which all workers came. O(entries) time. DataError where the bytes are no ledger of so many workers.
std::vector<LedgerMeeting> meetings_of(const LedgerBytes& bytes, int workers);

}  // namespace echelon::inline exchange
