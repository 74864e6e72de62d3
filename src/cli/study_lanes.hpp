// SPDX-License-Identifier: Apache-2.0
// Runs the cells of a study on the ranks of a launch: one after another on part of the ranks while the others sleep, or
// side by side in lanes. Each lane has its own ranks and its own ledger (study_ledger.hpp).
//
// An error of one rank alone ends the launch with all lanes; the next launch continues their cells. A cell that
// diverges or fails on all its ranks ends alone.
#pragma once

#include <memory>

#include "cli/study_ledger.hpp"
#include "comm/engine.hpp"
#include "study/study.hpp"

namespace echelon::cli {

// Engine options of launches that run studies: ranks that take no part in a cell sleep between polls.
inline constexpr EngineOptions kIdleRanks{.yield_s = 0, .patience_s = 0, .sleep_s = 1e-3, .long_sleep_s = 50e-3};

// All ranks: runs the rest of the study, which must be the same on all. Returns the ledger on rank 0, else null.
// `stop`: 0, or the code of a stop by a signal. ConfigError: the launch is too small for study.side_by_side.
std::unique_ptr<StudyLedger> run_lanes(const StudyPlan& study, Engine& launch, int& stop, const Decided& decided = {});

}  // namespace echelon::cli
