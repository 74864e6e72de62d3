// SPDX-License-Identifier: Apache-2.0
// Refuses launches in which every rank would be alone: the program would run several times, each time on one rank.
#pragma once

#include <cstdint>
#include <string>

#include "base/launchers.hpp"

namespace echelon::inline comm {

// The numbers of Slurm tasks by the environment: of the step in which srun started this process, and of the whole job;
// 0 outside one (a job's shell is in no step). ConfigError if they are not numbers.
struct SlurmTasks {
  std::int64_t step = 0, job = 0;
  bool lone() const { return step == 0 && job > 1; }  // one process where several were asked for
};
SlurmTasks slurm_tasks();

// Before MPI starts. EnvironmentError if several tasks would each be a world of one rank, or if only one process was
// started for several tasks. `launched`: a launcher by which ranks find each other started this process. `library`: as
// mpi_version returns it.
void refuse_lone_ranks(const SlurmTasks& tasks, bool launched, const std::string& library);

// After MPI has started with one rank. EnvironmentError, with the launch that works, if this launcher has started
// `ranks` > 1 processes: the library and the launcher do not speak the same protocol.
void refuse_unmet_ranks(const LauncherTraits& launcher, std::int64_t ranks, const std::string& library);

}  // namespace echelon::inline comm
