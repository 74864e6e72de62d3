// SPDX-License-Identifier: Apache-2.0
#include "exchange/asynchronous/ledger_meetings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace echelon::inline exchange {

std::vector<LedgerMeeting> meetings_of(const LedgerBytes& bytes, int workers) {
  const auto all = static_cast<std::size_t>(workers);
  std::vector<LedgerMeeting> meetings;
  std::vector<std::int64_t> updates(all), at_meeting(all);
  std::vector<bool> stands(all, false), done(all, false);
  for (LedgerReader reader(bytes); !reader.over(); reader.next()) {
    const LedgerEntry& entry = reader.entry();
    const auto w = static_cast<std::size_t>(entry.worker);
    if (w >= all || stands[w] || done[w])
      throw DataError(
          fmt::format("entry {} of the order of arrivals belongs to worker {}, which cannot come here; there are {}",
                      reader.index(), entry.worker, workers));
    if (entry.kind == AsyncKind::update) {
      ++updates[w];
      continue;
    }
    stands[w] = entry.kind == AsyncKind::meet;
    done[w] = entry.kind == AsyncKind::done;
    at_meeting[w] = updates[w];
    bool closes = true;
    for (std::size_t o = 0; o < all; ++o) closes = closes && (stands[o] || done[o]);
    if (!closes || std::find(stands.begin(), stands.end(), true) == stands.end()) continue;
    meetings.push_back({.updates = at_meeting, .end = reader.end()});
    std::fill(stands.begin(), stands.end(), false);
  }
  return meetings;
}

}  // namespace echelon::inline exchange
