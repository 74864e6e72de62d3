// A study without an allocation: one Slurm job for each number of ranks, and one that writes the report after them. A
// job array would have to ask for the largest size in every element.
#pragma once

#include <string>
#include <vector>

#include "study/study.hpp"

namespace echelon::inline study {

struct SlurmJob {
  std::string path;  // <study>/jobs/k4.sbatch
  std::string text;
  bool reports = false;  // begins after all others have ended
};

// One a size, then the report's. `echelon`: the executable; `folder`: where the study was started.
std::vector<SlurmJob> slurm_jobs(const StudyPlan& study, const std::string& echelon, const std::string& folder);

}  // namespace echelon::inline study
