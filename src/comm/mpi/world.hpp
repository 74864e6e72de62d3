// SPDX-License-Identifier: Apache-2.0
// Starts and ends MPI once per process, and refuses launches that would leave every rank alone.
#pragma once

#include <functional>
#include <memory>

#include "comm/mpi/segments.hpp"
#include "comm/transport.hpp"

namespace echelon::inline comm {

class MpiWorld {
 public:
  // Starts MPI with MPI_THREAD_SERIALIZED, once per process; sets the rank of this thread (base/check.hpp). Throws
  // EnvironmentError, with the remedy in one line, if several processes were started but MPI gives each a world of one
  // rank (lone_ranks.hpp), or if the library does not offer the thread level. `initialised` is called with this
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

}  // namespace echelon::inline comm
