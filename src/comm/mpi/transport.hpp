#pragma once

#include <memory>

#include "comm/mpi/calls.hpp"
#include "comm/transport.hpp"

namespace echelon::inline comm {

// Takes the communicator over and frees it.
std::unique_ptr<Transport> make_mpi_transport(MPI_Comm communicator);

}  // namespace echelon::inline comm
