// The end of an attempt whose loop has ended without an error.
#pragma once

#include <functional>

#include "run/running.hpp"

namespace echelon::inline run {

// Collective, blocking: collects the figures of all ranks; rank 0 writes summary.json, wire.json and staleness.json,
// concludes the status and logs the last lines. Returns the exit code. Calls `has_ended` on every rank once a rank that
// does not come any more changes nothing about the end; on rank 0 twice. Throws EnvironmentError on all ranks if a file
// cannot be written.
int end_attempt(Ready& ready, Running& running, Ending ending, const std::function<void()>& has_ended);

}  // namespace echelon::inline run
