// SPDX-License-Identifier: Apache-2.0
// Ranks as threads, for tests: every rank runs `body` with its own transport of a common local world.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/transport.hpp"

namespace echelon::verify {

// Factor on every deadline of run_ranks. Tests set it before they start, for sanitised builds.
inline double ranks_patience = 1;

// Runs `body(transport)` on `ranks` threads, joins them within `deadline_s`, and rethrows the first error with its rank
// in front. If ranks are still running at the deadline, the error names them and the process ends, because they cannot
// be joined. `body` must not use Catch2's macros: it may throw (ECHELON_CHECK) or return values through captured
// storage.
// `hosts` as in Transport::hosts; empty: all ranks on one host.
void run_ranks(int ranks, const std::function<void(std::unique_ptr<Transport>)>& body, double deadline_s = 60,
               const std::vector<int>& hosts = {});

}  // namespace echelon::verify
