// What the tests under MPI share: one start of MPI, of which each test takes transports.
#pragma once

#include <memory>

#include "comm/transport.hpp"

namespace echelon::test {

// A message space of its own over all ranks; every rank asks at the same place. It must be gone before the test ends.
std::unique_ptr<Transport> ring_transport();
int ring_rank();
int ring_size();

}  // namespace echelon::test
