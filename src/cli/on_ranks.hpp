// Verbs that run alone or on all ranks of a launch.
#pragma once

#include <functional>

#include "comm/engine.hpp"

namespace echelon::cli {

// Calls `verb` with the ranks of this launch (mpirun, srun), or with null in a process that was started by itself,
// which then starts no MPI. Returns the exit code. A CommonError is printed once and ends every rank normally; any
// other error of one of several ranks is printed by it and ends the world.
int on_ranks(const std::function<int(Engine*)>& verb);

}  // namespace echelon::cli
