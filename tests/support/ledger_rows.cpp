#include "tests/support/ledger_rows.hpp"

#include <map>

namespace echelon::test {

std::vector<LedgerRow> ledger_rows(const LedgerBytes& bytes) {
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
