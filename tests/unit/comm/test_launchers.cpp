// SPDX-License-Identifier: Apache-2.0
// Launchers that are known by their variables, names of MPI libraries, and starts whose ranks do not find each other.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/launchers.hpp"
#include "comm/mpi/library.hpp"
#include "comm/mpi/lone_ranks.hpp"
#include "job/launch.hpp"

namespace echelon {
namespace {

using Catch::Contains;

// Sets these variables during its lifetime, and none other that a launcher sets.
class LaunchedBy {
 public:
  explicit LaunchedBy(const std::map<std::string, std::string>& variables) {
    for (const LauncherTraits& launcher : kLaunchers)
      for (const char* name : {launcher.sign, launcher.rank, launcher.ranks, launcher.local_ranks, launcher.connects})
        if (name != nullptr) keep(name);
    for (const auto& [name, value] : variables) {
      keep(name);
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~LaunchedBy() {
    for (const auto& [name, value] : before_)
      value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
  }
  LaunchedBy(const LaunchedBy&) = delete;

 private:
  void keep(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    before_.try_emplace(name, value != nullptr ? value : "");
    ::unsetenv(name.c_str());
  }
  std::map<std::string, std::string> before_;
};

}  // namespace

TEST_CASE("launchers are known by the variables that they set", "[comm]") {
  struct Case {
    std::map<std::string, std::string> variables;
    std::string name, rank;
    bool under_launcher;
    std::int64_t ranks;
  };
  // Variables that the launchers of Open MPI 4.1 and 5.0, MPICH 4 and 5, Intel MPI and Slurm have been seen to set;
  // those of the others are from their manuals.
  const std::vector<Case> cases = {
      {{{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"PMIX_RANK", "3"}, {"SLURM_PROCID", "0"}},
       "mpirun of Open MPI",
       "3",
       true,
       4},
      {{{"PMI_RANK", "2"}, {"PMI_SIZE", "5"}, {"MPI_LOCALNRANKS", "5"}, {"SLURM_STEP_NUM_TASKS", "2"}},
       "mpiexec of MPICH (Hydra)",
       "2",
       true,
       5},
      {{{"SLURM_STEP_NUM_TASKS", "6"}, {"SLURM_PROCID", "1"}}, "srun", "1", false, 6},
      {{{"SLURM_STEP_NUM_TASKS", "6"}, {"SLURM_PROCID", "1"}, {"PMI_RANK", "1"}}, "srun", "1", true, 6},
      {{{"SLURM_STEP_NUM_TASKS", "6"}, {"SLURM_PROCID", "1"}, {"PMIX_RANK", "1"}}, "srun", "1", true, 6},
      {{{"PMIX_RANK", "7"}}, "a PMIx server", "7", true, 0},
      {{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, "a PMI server", "1", true, 2},
      {{{"JSM_NAMESPACE_SIZE", "12"}, {"JSM_NAMESPACE_RANK", "11"}, {"PMIX_RANK", "11"}}, "jsrun", "11", true, 12},
      {{{"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "2"}, {"PMI_FD", "7"}, {"PMI_RANK", "1"}}, "flux run", "1", true, 2},
      {{{"PALS_RANKID", "9"}, {"PMI_SIZE", "10"}, {"PMI_RANK", "9"}}, "mpiexec of PALS", "9", true, 10},
  };
  for (const Case& one : cases) {
    const LaunchedBy launched(one.variables);
    const LauncherTraits* launcher = launcher_of_process();
    REQUIRE(launcher != nullptr);
    CAPTURE(launcher->name);
    CHECK(launcher->name == one.name);
    CHECK(rank_in_environment() == one.rank);
    CHECK(under_launcher() == one.under_launcher);
    CHECK(told_number(launcher->ranks, "ranks") == one.ranks);
  }
  const LaunchedBy none({});
  CHECK(launcher_of_process() == nullptr);
  CHECK_FALSE(under_launcher());
}

TEST_CASE("a launcher's variables are known from a user's settings", "[comm]") {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_NAMESPACE", "PMI_FD", "HYDI_CONTROL_FD", "MPI_LOCALRANKID"})
    CHECK(is_left_by_launcher(name));
  for (const char* name : {"OMPI_MCA_btl", "PMIX_MCA_psec", "PRTE_MCA_rmaps_default_mapping_policy", "I_MPI_FABRICS",
                           "FI_PROVIDER", "SLURM_JOB_ID", "PATH"})
    CHECK_FALSE(is_left_by_launcher(name));
}

TEST_CASE("libraries of MPI are named by family and version", "[comm]") {
  CHECK(library_name("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4") == "Open MPI 4.1.4");
  CHECK(library_name("MPICH Version:\t4.0.2\nMPICH Release date:\tThu") == "MPICH 4.0.2");
  CHECK(library_name("MPICH Version:      5.0.2\n") == "MPICH 5.0.2");
  CHECK(library_name("Intel(R) MPI Library 2021.18 for Linux* OS\n") == "Intel MPI 2021.18");
  CHECK(library_name("MPI VERSION    : CRAY MPICH version 8.1.29.34 (ANL base 3.4a2)\nMPI BUILD") ==
        "Cray MPICH 8.1.29.34");
  CHECK(library_name("MVAPICH2 Version      :\t2.3.7\n") == "MVAPICH 2.3.7");
  CHECK(library_name("Some MPI of 2040, with more\nlines") == "Some MPI of 2040");
  CHECK(start_command("Open MPI 4.1.4", true) ==
        "srun --mpi=pmix echelon ...   (or mpirun echelon ... inside the allocation)");
  CHECK_THAT(start_command("Cray MPICH 8.1.29", true), Contains("--mpi=cray_shasta"));
  CHECK_THAT(start_command(mpi_version(), false), Contains("mpirun"));
}

TEST_CASE("a start whose ranks do not find each other is refused with the launch that works", "[comm]") {
  for (const LauncherTraits& launcher : kLaunchers) {
    CHECK_NOTHROW(refuse_unmet_ranks(launcher, 0, "MPICH 4.0.2"));
    CHECK_NOTHROW(refuse_unmet_ranks(launcher, 1, "MPICH 4.0.2"));
    CHECK_THROWS_WITH(refuse_unmet_ranks(launcher, 3, "MPICH 4.0.2"),
                      Contains(launcher.name) && Contains("started 3 processes, but MPICH 4.0.2") &&
                          Contains("the run would start 3 times") && Contains("Start it with: "));
  }
}

}  // namespace echelon
