// SPDX-License-Identifier: Apache-2.0
// A run that goes on without lost workers: attempts one after another in the same processes, each over the remaining
// ranks (run.on_lost_worker = "continue").
#pragma once

#include <functional>
#include <memory>

#include "comm/transport.hpp"
#include "run/attempt.hpp"

namespace echelon::inline run {

// Collective over all ranks of the launch. Calls `on_loss` on each remaining rank, at every loss. Returns the exit code
// of the last attempt; throws nothing. A config without "continue" makes one attempt, as Attempt::run.
int run_with_survivors(std::shared_ptr<Transport> launch, const AttemptOptions& options,
                       const std::function<void()>& on_loss);

}  // namespace echelon::inline run
