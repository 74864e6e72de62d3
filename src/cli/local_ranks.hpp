// SPDX-License-Identifier: Apache-2.0
// Runs ranks as threads of this process over memory instead of a launch: for a debugger, a replay or without MPI.
#pragma once

#include <functional>

#include "comm/engine.hpp"

namespace echelon::cli {

// Calls `rank(engine)` on as many threads as ranks and returns the exit code of rank 0. The transport of each engine is
// the one over memory, wrapped by `wrap`. An exception ends all ranks (end_local_ranks). Throws ConfigError if a
// launcher has started this process.
using WrapTransport = std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)>;
int on_local_ranks(int ranks, const std::function<int(Engine&)>& rank, const WrapTransport& wrap = {});

// Ends this process, and with it all its ranks, immediately.
[[noreturn]] void end_local_ranks(int exit_code);

}  // namespace echelon::cli
