// SPDX-License-Identifier: Apache-2.0
// A transport for tests whose ranks are threads of one process. It counts exactly; its clock is the host's.
//
// It is stricter than MPI: no send is buffered (each completes only once its receive is posted), and a library
// all-reduce in which sizes or dtypes of ranks differ throws EnvironmentError. A library all-reduce adds in rank order.
// `abort` throws EnvironmentError on all ranks instead of ending the process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/transport.hpp"

namespace echelon::inline comm {

// Returns one transport per rank. `hosts` has the meaning of Transport::hosts; empty: all ranks are on one host.
std::vector<std::unique_ptr<Transport>> make_local_world(int ranks, const std::vector<int>& hosts = {});

// The state shared by the ranks of a local world; a test harness keeps it to end ranks that still wait. Any thread.
class LocalWorld;
std::shared_ptr<LocalWorld> new_local_world(int ranks, const std::vector<int>& hosts = {});
std::unique_ptr<Transport> local_transport(std::shared_ptr<LocalWorld> world, int rank);
// From now on every call on the world's transports, and on those split from it, throws EnvironmentError with `why`.
void end_local_world(LocalWorld& world, const std::string& why);

}  // namespace echelon::inline comm
