// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/lone_ranks.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "comm/mpi/library.hpp"

namespace echelon::inline comm {

SlurmTasks slurm_tasks() {
  return {.step = told_number("SLURM_STEP_NUM_TASKS", "tasks"), .job = told_number("SLURM_NTASKS", "tasks")};
}

void refuse_lone_ranks(const SlurmTasks& tasks, bool launched, const std::string& library) {
  if (launched) return;
  const std::string cure = "Start it with: " + start_command(library, true);
  if (tasks.step > 1)
    throw EnvironmentError(
        fmt::format("Slurm started {} tasks, but MPI would see one rank in each: the run would start {} times, each on "
                    "one rank.\n{}",
                    tasks.step, tasks.step, cure));
  if (tasks.lone())
    throw EnvironmentError(
        fmt::format("this job has {} tasks (SLURM_NTASKS), but this is one process that was started without srun: it "
                    "would run alone.\n{}; for one rank: the same with --ntasks=1",
                    tasks.job, cure));
}

void refuse_unmet_ranks(const LauncherTraits& launcher, std::int64_t ranks, const std::string& library) {
  if (ranks <= 1) return;
  throw EnvironmentError(fmt::format(
      "{} started {} processes, but {}, with which this program is built, sees one rank in each: the run would start "
      "{} times, each on one rank.\nStart it with: {}",
      launcher.name, ranks, library, ranks, start_command(library, launcher)));
}

}  // namespace echelon::inline comm
