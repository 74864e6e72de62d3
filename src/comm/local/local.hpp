// Ranks as threads of one process: a transport for tests, with exact counters. Its clock is the host's.
//
// Stricter than MPI: no send is buffered (each completes only once its receive is posted), and a library all-reduce in
// which sizes or dtypes of ranks differ is an EnvironmentError. A library all-reduce adds in rank order. `abort` throws
// EnvironmentError on all ranks instead of ending the process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/transport.hpp"

namespace echelon::inline comm {

// One transport for each rank. `hosts` as in Transport::hosts; empty: all ranks on one host.
std::vector<std::unique_ptr<Transport>> make_local_world(int ranks, const std::vector<int>& hosts = {});

// The common state of the ranks of a local world; a harness keeps it to end ranks that still wait. Any thread.
class LocalWorld;
std::shared_ptr<LocalWorld> new_local_world(int ranks, const std::vector<int>& hosts = {});
std::unique_ptr<Transport> local_transport(std::shared_ptr<LocalWorld> world, int rank);
// From now on every call on the world's transports, and on those split from it, throws EnvironmentError with `why`.
void end_local_world(LocalWorld& world, const std::string& why);

}  // namespace echelon::inline comm
