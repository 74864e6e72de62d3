// SPDX-License-Identifier: Apache-2.0
// Simulates parameter servers: the protocols that runs execute (exchange/server/protocol.hpp,
// exchange/asynchronous/protocol.hpp, exchange/backup/protocol.hpp) run on virtual time (comm/virtual/). Every rank
// exists, computes for the times of the step model and exchanges messages. The bytes of messages and the bandwidths of
// the network are divided by the same number, so messages take as long as the real ones.
//
// The simulation is the slow reference of the closed forms of server, backup, asynchronous and stale_synchronous. The
// network is that of comm/virtual/world.hpp; a message occupies its card for its bytes and half a latency, as in
// comm/collective/plan_time.hpp. Sends respect the engine's budget (comm/send_budget.hpp) and exchange.priority.
#pragma once

#include "planner/strategy_models.hpp"

namespace echelon::inline planner {

// Whether the exchange is uncoded and unclipped, and has so few messages that the simulation takes half a second at
// most.
bool can_simulate_served(const StrategySetting& setting, int replicas);
// Mean seconds from step to step over all workers, after the first steps; the replicas' steps vary as drawn. The first
// function simulates the strategy of the setting, simulated_async_s both asynchronous and stale_synchronous.
double simulated_served_s(const StrategySetting& setting, int replicas);
double simulated_server_s(const StrategySetting& setting, int replicas);
double simulated_async_s(const StrategySetting& setting, int replicas);
// Counts the steps that are closed. The servers' arithmetic takes no time.
double simulated_backup_s(const StrategySetting& setting, int replicas);

}  // namespace echelon::inline planner
