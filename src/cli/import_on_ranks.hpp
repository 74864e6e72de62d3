// SPDX-License-Identifier: Apache-2.0
// Runs an import of samples on the ranks of a launch, or in one process, and prints its outcome.
#pragma once

#include <functional>

#include "cli/options.hpp"
#include "data/import/import_team.hpp"

namespace echelon::cli {

// `unit`: "images", for messages. `write` is called on every rank. Returns the exit code.
int import_on_ranks(const ImportOptions& options, const char* unit,
                    const std::function<ImportWritten(const ImportTeam&)>& write);

}  // namespace echelon::cli
