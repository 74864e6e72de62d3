// A ledger as rows, for comparisons with what a test expects.
#pragma once

#include <cstdint>
#include <vector>

#include "exchange/asynchronous/ledger.hpp"

namespace echelon::test {

// An entry with values that follow from the earlier entries.
struct LedgerRow {
  LedgerEntry entry;
  std::int64_t clock = 0;    // number of updates of the piece that this worker has pushed, including this one
  std::int64_t version = 0;  // of the piece after this entry
};

// O(entries). Throws DataError as LedgerReader does.
std::vector<LedgerRow> ledger_rows(const LedgerBytes& bytes);

}  // namespace echelon::test
