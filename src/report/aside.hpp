// SPDX-License-Identifier: Apache-2.0
// Evaluations of a run's checkpoints by another job (cli/follow.cpp). They have a file of their own in its folder:
//
//   <run>/evaluation.jsonl   {"type":"aside","epoch":1,"step":17,"test_loss":..,"seconds":..,"checkpoint":"<hash>"}
//
// The file has one row per step, in the order of steps. Each new row replaces the whole file.
#pragma once

#include <string>
#include <vector>

#include "report/figures.hpp"

namespace echelon::inline report {

struct AsideEvaluation {
  EpochFigures figures;
  std::string checkpoint;  // hash of its manifest, because a run that starts anew rewrites the same steps
};

// Returns no entries where the file does not exist. Throws DataError for a malformed file.
std::vector<AsideEvaluation> read_aside(const std::string& run);
// Adds an evaluation, or replaces the one of the same step. Throws EnvironmentError.
void add_aside(const std::string& run, const AsideEvaluation& evaluation);

}  // namespace echelon::inline report
