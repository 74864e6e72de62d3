// Backup workers by their very machine (exchange/backup/protocol.hpp) on virtual time, as virtual_served.hpp.
#pragma once

#include "planner/strategy_models.hpp"

namespace echelon::inline planner {

// Mean seconds from step to step that is closed. The servers' arithmetic takes no time.
double simulated_backup_s(const StrategySetting& setting, int replicas);

}  // namespace echelon::inline planner
