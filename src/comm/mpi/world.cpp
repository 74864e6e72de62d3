// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/world.hpp"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "base/check.hpp"
#include "base/launchers.hpp"
#include "base/stretch.hpp"
#include "comm/mpi/calls.hpp"
#include "comm/mpi/library.hpp"
#include "comm/mpi/lone_ranks.hpp"
#include "comm/mpi/transport.hpp"

namespace echelon::inline comm {
namespace {

// In these cases Open MPI and MPICH 5 end the process inside MPI_Init, with a page about how to build them; another
// library may start, or give each rank a world of its own.
void hint_at_unfit_launcher(const LauncherTraits& launcher, const std::string& library) {
  const char* rank = std::getenv(launcher.rank);
  if (rank == nullptr || std::string_view(rank) != "0") return;
  const bool open_mpi = is_open_mpi();
  const bool without_pmix = std::getenv("PMIX_RANK") == nullptr && std::getenv("PMI_RANK") != nullptr;
  if (open_mpi ? !without_pmix : !launcher.terminals) return;
  std::fputs(fmt::format("echelon: {} has started this rank {}. Where MPI cannot start now: {}\n", launcher.name,
                         open_mpi ? "without PMIx" : "of a program that is built with " + library,
                         start_command(library, launcher))
                 .c_str(),
             stderr);
}

}  // namespace

MpiWorld::MpiWorld(const std::function<void(int rank)>& initialised) : unwinding_(std::uncaught_exceptions()) {
  const std::string library = mpi_version();
  const LauncherTraits* launcher = launcher_of_process();
  refuse_lone_ranks(slurm_tasks(), launcher != nullptr && connects_ranks(*launcher), library);
  if (launcher != nullptr) hint_at_unfit_launcher(*launcher, library);
  int level = 0;
  enter_stretch(kStartOfMpi);
  mpi::check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  try {
    if (size_ == 1 && launcher != nullptr)
      refuse_unmet_ranks(*launcher, told_number(launcher->ranks, "ranks"), library);
    if (level < MPI_THREAD_SERIALIZED)
      throw EnvironmentError(library +
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
