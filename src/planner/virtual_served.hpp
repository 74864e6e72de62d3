// Parameter servers by their very machines (exchange/server/protocol.hpp, exchange/asynchronous/protocol.hpp,
// exchange/backup/protocol.hpp) on virtual time (comm/virtual/): every rank is there, computes for the times of the
// step model and exchanges messages whose bytes and whose network's bandwidth are divided by the same number, so that
// they take as long as the real ones.
//
// The slow oracle of the closed forms of server, backup, asynchronous and stale_synchronous. The network is that of
// comm/virtual/world.hpp; a message holds its card for its bytes and half a latency, as in
// comm/collective/plan_time.hpp. Sends keep to the engine's budget (comm/send_budget.hpp) and to exchange.priority.
#pragma once

#include "planner/strategy_models.hpp"

namespace echelon::inline planner {

// Uncoded, not clipped, and few enough messages for half a second.
bool can_simulate_served(const StrategySetting& setting, int replicas);
// Mean seconds from step to step over all workers, after the first steps; those of replicas vary as drawn. Of the
// strategy of the setting; of strategy server; of asynchronous and stale_synchronous.
double simulated_served_s(const StrategySetting& setting, int replicas);
double simulated_server_s(const StrategySetting& setting, int replicas);
double simulated_async_s(const StrategySetting& setting, int replicas);
// Of backup; of the steps that are closed. The servers' arithmetic takes no time.
double simulated_backup_s(const StrategySetting& setting, int replicas);

}  // namespace echelon::inline planner
