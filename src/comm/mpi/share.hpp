// Shared memory as the library makes it: MPI-3 windows.
#pragma once

#include <memory>

#include "comm/mpi/calls.hpp"
#include "comm/shared_block.hpp"

namespace echelon::inline comm {

// Collective; `bytes` of this rank's part. Null on every rank where the system gives no such memory.
std::shared_ptr<SharedBlock> make_shared_window(MPI_Comm communicator, std::size_t bytes);

}  // namespace echelon::inline comm
