// SPDX-License-Identifier: Apache-2.0
// Shared memory of the ranks of one host: MPI-3 windows (MPI_Win_allocate_shared).
#pragma once

#include <memory>

#include "comm/mpi/calls.hpp"
#include "comm/shared_block.hpp"

namespace echelon::inline comm {

// Collective over the communicator, whose ranks are on one host. `bytes` is the size of this rank's part, which is
// aligned to 64 bytes and zeroed. Returns null on every rank if any rank cannot get the memory (a small /dev/shm). The
// window is not freed before the process ends: freeing is collective, and ranks that leave after an error leave alone.
std::shared_ptr<SharedBlock> make_shared_window(MPI_Comm communicator, std::size_t bytes);

}  // namespace echelon::inline comm
