// Ranks as threads, for tests: every rank runs `body` with its own transport of one local world.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/transport.hpp"

namespace echelon::verify {

// Every deadline of run_ranks is multiplied by this: tests set it for sanitised builds, before they start.
inline double ranks_patience = 1;

// Runs `body(transport)` on `ranks` threads and joins them within `deadline_s`; then rethrows the first error with its
// rank in front. Ranks that are still running at the deadline are named in the error, and the process ends (they cannot
// be joined). Catch2's macros must not be used inside `body`: throw (ECHELON_CHECK) or return values through captured
// storage.
// `hosts` as in Transport::hosts; empty: all on one.
void run_ranks(int ranks, const std::function<void(std::unique_ptr<Transport>)>& body, double deadline_s = 60,
               const std::vector<int>& hosts = {});

}  // namespace echelon::verify
