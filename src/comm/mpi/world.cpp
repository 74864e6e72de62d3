#include "comm/mpi/world.hpp"

#include <climits>
#include <cstdlib>
#include <exception>

#include "base/check.hpp"
#include "base/stretch.hpp"
#include "comm/mpi/calls.hpp"
#include "comm/mpi/transport.hpp"

namespace echelon::inline comm {
namespace {

int slurm_tasks() {
  for (const char* name : {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"})
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return 1;
}

bool started_by_mpirun() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

bool has_pmi() {
  for (const char* name : {"PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK", "PMI_FD"})
    if (std::getenv(name)) return true;
  return false;
}

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

void refuse_lone_ranks(int tasks, bool launched) {
  if (tasks <= 1 || launched) return;
  throw EnvironmentError(
      fmt::format("Slurm started {} tasks, but MPI would see one rank in each: they would train alone, {} times.\n"
                  "Start it with: srun --mpi=pmix echelon ...   (or mpirun echelon ... inside the allocation)",
                  tasks, tasks));
}

MpiWorld::MpiWorld(const std::function<void(int rank)>& initialised) : unwinding_(std::uncaught_exceptions()) {
  const int tasks = slurm_tasks();
  const bool mpirun = started_by_mpirun();
  refuse_lone_ranks(tasks, mpirun || has_pmi());
  int level = 0;
  enter_stretch("MPI_Init");
  mpi::check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  try {
    if (size_ == 1) refuse_lone_ranks(tasks, mpirun);
    if (level < MPI_THREAD_SERIALIZED)
      throw EnvironmentError(mpi_version() +
                             " offers no MPI_THREAD_SERIALIZED; echelon calls it from a thread of its own");
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
