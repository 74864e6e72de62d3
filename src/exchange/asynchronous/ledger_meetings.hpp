// SPDX-License-Identifier: Apache-2.0
// Finds the meetings in the order of arrivals at one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exchange/asynchronous/ledger.hpp"

namespace echelon::inline exchange {

struct LedgerMeeting {
  std::vector<std::int64_t> updates;  // by worker: number of its updates of the piece before the meeting
  std::size_t end = 0;                // index of the first byte after the last worker's entry

  friend bool operator==(const LedgerMeeting&, const LedgerMeeting&) = default;
};

// Returns the meetings to which all workers came. O(entries) time. Throws DataError if the bytes are not a ledger for
// this number of workers.
std::vector<LedgerMeeting> meetings_of(const LedgerBytes& bytes, int workers);

}  // namespace echelon::inline exchange
