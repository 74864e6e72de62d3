// One start and one end of MPI in a process, and the refusal of launches that would leave every rank alone.
#pragma once

#include <memory>
#include <string>

#include "comm/transport.hpp"

namespace echelon::inline comm {

// "Open MPI 4.1.4"; may be asked before MPI is started.
std::string mpi_version();

class MpiWorld {
 public:
  // Starts MPI with MPI_THREAD_SERIALIZED. Throws EnvironmentError, with the cure in one line, where the environment
  // says that there are several tasks but MPI would see one rank each (srun without PMI), or where the library does not
  // offer the thread level.
  MpiWorld();
  // A barrier, then MPI_Finalize. While an exception unwinds, neither: other ranks may never come to it, so abort()
  // must follow.
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // All ranks, with a message space of its own. Collective; the transport must go before the world does.
  std::unique_ptr<Transport> transport();
  // The library's blocking all-reduce (sum, in place), outside any engine: what a program that calls MPI_Allreduce
  // would take. No transport may have anything under way.
  void allreduce(void* data, std::size_t elems, DType dtype);
  // Ends every rank with this code, now; any thread.
  [[noreturn]] static void abort(int exit_code);

 private:
  int rank_ = 0, size_ = 1;
  int unwinding_ = 0;
};

// What the launch check reads, apart so that it can be tested without MPI: throws where `tasks` tasks would each be a
// world of one rank. `launched`: mpirun or a PMI server started this process.
void refuse_lone_ranks(int tasks, bool launched);

}  // namespace echelon::inline comm
