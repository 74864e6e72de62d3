// SPDX-License-Identifier: Apache-2.0
// Runs a verb in one process or on all ranks of a launch.
#pragma once

#include <functional>

#include "comm/engine.hpp"
#include "comm/mpi/world.hpp"
#include "job/launch.hpp"

namespace echelon::cli {

// Calls `verb` with the engine of this launch (mpirun, srun), or with null, without starting MPI, in a process that was
// started alone. Returns the exit code of `verb`. A CommonError is printed once and ends every rank normally. Any other
// error of one of several ranks is printed by that rank and ends the world (MPI_Abort with its exit code). A single
// process throws its errors. Throws EnvironmentError for a launch of lone ranks (comm/mpi/world.hpp).
int on_ranks(const std::function<int(Engine*)>& verb);

// The same error handling for a verb that starts MPI itself. Returns the exit code of `verb`, or that of an error that
// it printed; ends the world for an error that only this rank may have.
int ending_world(const MpiWorld& world, const std::function<int()>& verb);

// The ranks that share the work of a verb.
struct JointRanks {
  explicit JointRanks(Engine* engine);
  bool reports() const { return slot.rank == 0; }
  // Runs `body` on this rank; a failure on one rank is a failure on all. Collective.
  void together(const std::function<void()>& body) const;

  Engine* engine = nullptr;  // null: this process alone
  HostSlot slot{};
};

}  // namespace echelon::cli
