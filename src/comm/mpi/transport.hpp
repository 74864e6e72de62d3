// SPDX-License-Identifier: Apache-2.0
// Transport (comm/transport.hpp) over an MPI communicator: nonblocking point-to-point calls and MPI_Iallreduce, at
// MPI_THREAD_SERIALIZED. Tests of all requests share one MPI_Testsome. Messages may be longer than 2 GiB; a library
// call takes at most 2^31 - 1 elements of f32 or f64.
#pragma once

#include <memory>

#include "comm/mpi/calls.hpp"
#include "comm/transport.hpp"

namespace echelon::inline comm {

// Takes over the communicator and frees it at its end, unless MPI was finalised before. Collective and blocking: the
// hosts of all ranks are gathered, 260 bytes per rank (ranks that can share memory are on one host), and a communicator
// of the ranks of one host is split off. Transports that are split from this one inherit the hosts without a message.
// MPI errors are thrown as EnvironmentErrors.
std::unique_ptr<Transport> make_mpi_transport(MPI_Comm communicator);

}  // namespace echelon::inline comm
