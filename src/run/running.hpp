// SPDX-License-Identifier: Apache-2.0
// A phase of an attempt: what its loop uses together with the other ranks.
#pragma once

#include <functional>
#include <memory>

#include "run/link_waits.hpp"
#include "run/ready.hpp"
#include "run/wire_matrix.hpp"
#include "train/hooks/update_order.hpp"
#include "train/loop.hpp"

namespace echelon::inline run {

struct Running {
  // Collective. EnvironmentError on all ranks if the order of arrivals cannot be recorded.
  explicit Running(Ready& ready);
  Running(const Running&) = delete;

  std::unique_ptr<UpdateOrderHook> update_order;  // asynchronous replicas with a server; called before other hooks
  Control control;
  WireMatrix wire;
  LinkWaitsOfRun waits;
  LoopParts loop;
};

// Collective, blocking: collects the figures of all ranks; rank 0 writes summary.json, wire.json and staleness.json,
// concludes the status and logs the last lines. Returns the exit code. Calls `has_ended` on every rank once a rank that
// does not come any more changes nothing about the end; on rank 0 twice. Throws EnvironmentError on all ranks if a file
// cannot be written.
int end_attempt(Ready& ready, Running& running, Ending ending, const std::function<void(int exit_code)>& has_ended);

}  // namespace echelon::inline run
