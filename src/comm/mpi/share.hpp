// Shared memory of the ranks of one host: MPI-3 windows (MPI_Win_allocate_shared).
#pragma once

#include <memory>

#include "comm/mpi/calls.hpp"
#include "comm/shared_block.hpp"

namespace echelon::inline comm {

// Collective over the communicator, whose ranks are on one host; `bytes` of this rank's part, aligned to 64, zeroed.
// Null on every rank where any rank gets no such memory (a small /dev/shm). The window is never freed before the
// process ends, since that is collective and ranks that leave after an error leave alone.
std::shared_ptr<SharedBlock> make_shared_window(MPI_Comm communicator, std::size_t bytes);

}  // namespace echelon::inline comm
