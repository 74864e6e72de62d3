// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/world.hpp"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string_view>

#include "base/check.hpp"
#include "base/environment.hpp"
#include "base/stretch.hpp"
#include "comm/mpi/calls.hpp"
#include "comm/mpi/transport.hpp"

namespace echelon::inline comm {
namespace {

std::int64_t tasks_in(const char* name) {
  return whole_in_environment(name, "tasks", 1, std::numeric_limits<int>::max()).value_or(0);
}

bool has_pmi() {
  for (const char* name : {"PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK", "PMI_FD"})
    if (std::getenv(name)) return true;
  return false;
}

// In this case Open MPI ends the process inside MPI_Init, with exit code 1 and a page about how to build it; another
// library may start.
void hint_at_other_pmi() {
  const char* rank = std::getenv("PMI_RANK");
  if (std::getenv("PMIX_RANK") != nullptr || rank == nullptr || std::string_view(rank) != "0") return;
  if (!mpi_version().starts_with("Open MPI")) return;
  std::fputs(
      "echelon: srun has started this rank without PMIx. Where MPI cannot start now: srun --mpi=pmix echelon ...\n",
      stderr);
}

bool started_by_mpirun() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

}  // namespace

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string version(text);
  version.resize(version.find_first_of(",\n") == std::string::npos ? version.size() : version.find_first_of(",\n"));
  if (const auto v = version.find(" v"); v != std::string::npos) version.erase(v + 1, 1);
  return version;
}

SlurmTasks slurm_tasks() { return {.step = tasks_in("SLURM_STEP_NUM_TASKS"), .job = tasks_in("SLURM_NTASKS")}; }

void refuse_lone_ranks(const SlurmTasks& tasks, bool launched) {
  constexpr const char* kCure =
      "Start it with: srun --mpi=pmix echelon ...   (or mpirun echelon ... inside the allocation)";
  if (launched) return;
  if (tasks.step > 1)
    throw EnvironmentError(
        fmt::format("Slurm started {} tasks, but MPI would see one rank in each: the run would start {} times, each on "
                    "one rank.\n{}",
                    tasks.step, tasks.step, kCure));
  if (tasks.lone())
    throw EnvironmentError(
        fmt::format("this job has {} tasks (SLURM_NTASKS), but this is one process that was started without srun: it "
                    "would run alone.\n{}; for one rank: srun --mpi=pmix --ntasks=1",
                    tasks.job, kCure));
}

MpiWorld::MpiWorld(const std::function<void(int rank)>& initialised) : unwinding_(std::uncaught_exceptions()) {
  const SlurmTasks tasks = slurm_tasks();
  const bool mpirun = started_by_mpirun();
  refuse_lone_ranks(tasks, mpirun || has_pmi());
  if (!mpirun) hint_at_other_pmi();
  int level = 0;
  enter_stretch(kStartOfMpi);
  mpi::check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  try {
    if (size_ == 1) refuse_lone_ranks(tasks, mpirun);
    if (level < MPI_THREAD_SERIALIZED)
      throw EnvironmentError(mpi_version() +
                             " does not offer MPI_THREAD_SERIALIZED, but echelon calls it from a thread of its own");
  } catch (...) {
    MPI_Finalize();
    throw;
  }
  set_thread_rank(rank_);
  if (initialised) initialised(rank_);
  enter_stretch("the first communicators");
  segments_.unlink_names();
}

MpiWorld::~MpiWorld() {
  if (std::uncaught_exceptions() > unwinding_) return;
  enter_stretch("the barrier at the end");
  segments_.restore_names();
  MPI_Barrier(MPI_COMM_WORLD);
  enter_stretch("MPI_Finalize");
  MPI_Finalize();
  enter_stretch(nullptr);
}

std::unique_ptr<Transport> MpiWorld::transport() {
  MPI_Comm copy = MPI_COMM_NULL;
  enter_stretch("the first communicators");
  mpi::check(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI_Comm_dup");
  return make_mpi_transport(copy);
}

void MpiWorld::allreduce(void* data, std::size_t elems, DType dtype) {
  ECHELON_CHECK(dtype == DType::f32 || dtype == DType::f64, "sums are of f32 or f64");
  ECHELON_CHECK_LE(elems, static_cast<std::size_t>(INT_MAX), "one library call");
  mpi::check(MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(elems), dtype == DType::f64 ? MPI_DOUBLE : MPI_FLOAT,
                           MPI_SUM, MPI_COMM_WORLD),
             "MPI_Allreduce");
}

void MpiWorld::abort(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace echelon::inline comm
