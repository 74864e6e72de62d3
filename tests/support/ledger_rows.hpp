// SPDX-License-Identifier: Apache-2.0
// A ledger as rows, for comparisons with what a test expects.
#pragma once

#include <cstdint>
#include <map>
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
inline std::vector<LedgerRow> ledger_rows(const LedgerBytes& bytes) {
  std::vector<LedgerRow> rows;
  std::map<int, std::int64_t> clocks;
  std::int64_t version = 0;
  for (LedgerReader reader(bytes); !reader.over(); reader.next()) {
    const LedgerEntry& entry = reader.entry();
    std::int64_t& clock = clocks[entry.worker];
    if (entry.kind == AsyncKind::update) ++clock;
    if (entry.new_version) ++version;
    rows.push_back({.entry = entry, .clock = clock, .version = version});
  }
  return rows;
}

}  // namespace echelon::test
