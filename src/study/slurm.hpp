// SPDX-License-Identifier: Apache-2.0
// Slurm jobs for a study: one per number of ranks, or an array of jobs that share its cells, and a job that writes the
// report after them. A single array for all sizes would have to request the largest size for every element.
#pragma once

#include <string>
#include <vector>

#include "study/study.hpp"

namespace echelon::inline study {

struct SlurmJob {
  std::string path;  // <study>/jobs/k4.sbatch
  std::string text;
  bool reports = false;  // begins after all the others have ended
};

// One job per size, then the report's. `echelon`: the executable. `folder`: where the study was started. `elements`: of
// each size's array; 1: no array.
std::vector<SlurmJob> slurm_jobs(const StudyPlan& study, const std::string& echelon, const std::string& folder,
                                 int elements = 1);

}  // namespace echelon::inline study
