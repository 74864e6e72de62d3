// SPDX-License-Identifier: Apache-2.0
// Starts and ends MPI once per process, and refuses launches that would leave every rank alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/mpi/segments.hpp"
#include "comm/transport.hpp"

namespace echelon::inline comm {

// Returns "Open MPI 4.1.4"; may be called before MPI is started.
std::string mpi_version();

class MpiWorld {
 public:
  // Starts MPI with MPI_THREAD_SERIALIZED, once per process; sets the rank of this thread (base/check.hpp). Throws
  // EnvironmentError, with the remedy in one line, if Slurm started several tasks but MPI would give each a world of
  // one rank (srun without PMI), or if the library does not offer the thread level. `initialised` is called with this
  // rank once MPI_Init has returned; what follows needs links between ranks, and may wait for one that is blocked.
  explicit MpiWorld(const std::function<void(int rank)>& initialised = {});
  // Calls a barrier, then MPI_Finalize. While an exception unwinds, it calls neither, because other ranks may never
  // reach the barrier; the caller must then call abort().
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // A transport over all ranks, with its own message space. Collective; it must be destroyed before the world.
  std::unique_ptr<Transport> transport();
  // The library's blocking all-reduce (sum, in place), outside any engine: the time that a program pays that calls
  // MPI_Allreduce. No transport may have anything in flight.
  void allreduce(void* data, std::size_t elems, DType dtype);
  // Ends every rank with this code at once (MPI_Abort); any thread, no destructor runs.
  [[noreturn]] static void abort(int exit_code);

 private:
  int rank_ = 0, size_ = 1;
  MpiSegments segments_;
  int unwinding_ = 0;
};

// The numbers of Slurm tasks by the environment: of the step in which srun started this process, and of the whole job;
// 0 outside one (a job's shell is in no step). ConfigError if they are not numbers.
struct SlurmTasks {
  std::int64_t step = 0, job = 0;
  bool lone() const { return step == 0 && job > 1; }  // one process where several were asked for
};
SlurmTasks slurm_tasks();

// The check of the launch, separate so that it can be tested without MPI. EnvironmentError if several tasks would each
// be a world of one rank, or if only one process was started for several tasks. `launched`: mpirun or a PMI server
// started this process.
void refuse_lone_ranks(const SlurmTasks& tasks, bool launched);

}  // namespace echelon::inline comm
