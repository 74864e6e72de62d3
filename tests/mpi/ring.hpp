// SPDX-License-Identifier: Apache-2.0
// Shared by the tests under MPI: MPI starts once, and each test takes transports from it.
#pragma once

#include <memory>

#include "comm/transport.hpp"

namespace echelon::test {

// Returns a new message space over all ranks; every rank calls this at the same place. It must not outlive the test.
std::unique_ptr<Transport> ring_transport();
int ring_rank();
int ring_size();

}  // namespace echelon::test
