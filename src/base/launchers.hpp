// SPDX-License-Identifier: Apache-2.0
// The launchers of MPI programs, known by the environment variables that they give to the processes that they start.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace echelon::inline base {

struct LauncherTraits {
  const char* name;
  const char* sign;         // is set in every process that this launcher starts
  const char* rank;         // index of the process in its launch
  const char* ranks;        // number of processes of the launch; null: not told
  const char* local_ranks;  // those on the same host; null: not told
  const char* connects;     // is set where ranks can find each other; null: always
  bool terminals = false;   // gives each rank a pseudo-terminal as standard output
};

// The first whose sign is set has started this process. Slurm and Flux start the helpers of other launchers, and
// several launchers speak PMI, so that the order matters.
// clang-format off
inline constexpr std::array<LauncherTraits, 8> kLaunchers = {{
    {"mpirun of Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr, true},
    {"jsrun", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_SIZE", nullptr},
    {"mpiexec of PALS", "PALS_RANKID", "PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_SIZE", nullptr},
    {"mpiexec of MPICH (Hydra)", "MPI_LOCALNRANKS", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", nullptr},
    {"flux run", "FLUX_TASK_RANK", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", nullptr, "PMI_FD"},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr, "PMI_RANK"},
    {"a PMIx server", "PMIX_RANK", "PMIX_RANK", nullptr, nullptr, nullptr},
    {"a PMI server", "PMI_RANK", "PMI_RANK", "PMI_SIZE", nullptr, nullptr},
}};
// clang-format on

// The launcher of this process; null: none is known by its environment.
const LauncherTraits* launcher_of_process();

// Whether ranks that this launcher has started can find each other: PMI, PMIx, or the launcher's own way.
bool connects_ranks(const LauncherTraits& launcher);

// The number in the variable, which may be null; 0 if it is not set. ConfigError, with `meaning`, if it is no number.
std::int64_t told_number(const char* variable, const char* meaning);

// Whether launchers tell a process its rank in this variable.
bool names_rank(std::string_view variable);
// Whether a launcher leaves this variable in the environment of its ranks. Another launcher that a rank starts would
// take it for its own. Settings that a user has made, as OMPI_MCA_btl and I_MPI_FABRICS, are none of them.
bool is_left_by_launcher(std::string_view variable);

}  // namespace echelon::inline base
