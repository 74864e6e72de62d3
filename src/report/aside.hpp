// Evaluations of a run's checkpoints by another job (cli/follow.cpp), in a file of their own in the run's folder:
//
//   <run>/evaluation.jsonl   {"type":"aside","epoch":1,"step":17,"test_loss":..,"seconds":..,"checkpoint":"<hash>"}
//
// in the order of steps, one row a step; the file is replaced whole with each row.
#pragma once

#include <string>
#include <vector>

#include "report/figures.hpp"

namespace echelon::inline report {

struct AsideEvaluation {
  EpochFigures figures;
  std::string checkpoint;  // hash of its manifest: a run that began anew writes other checkpoints of the same steps
};

// Empty where there is no file. DataError for one that is no such file.
std::vector<AsideEvaluation> read_aside(const std::string& run);
// Adds one, in place of an earlier one of its step. EnvironmentError.
void add_aside(const std::string& run, const AsideEvaluation& evaluation);

}  // namespace echelon::inline report
