// SPDX-License-Identifier: Apache-2.0
#include "cli/on_ranks.hpp"

#include <cstdio>

#include "base/error.hpp"
#include "base/failure.hpp"
#include "base/log.hpp"
#include "comm/group.hpp"
#include "comm/mpi/lone_ranks.hpp"
#include "comm/mpi/world.hpp"
#include "job/agree.hpp"
#include "job/launch.hpp"

namespace echelon::cli {
namespace {

// True in a launch or a job with several tasks: MpiWorld refuses a process that cannot see the others.
bool one_of_several_tasks() {
  const SlurmTasks tasks = slurm_tasks();
  return under_launcher() || tasks.step > 1 || tasks.lone();
}

int print(int code, const char* text) {
  flush_log();
  std::fprintf(stderr, "echelon: error: %s\n", text);
  return code;
}

// Ends the world with an error that only this rank may have.
int end_world(const MpiWorld& world, int code, const char* text) {
  if (world.size() == 1) return print(code, text);
  print(code, fmt::format("rank {}: {}", world.rank(), text).c_str());
  MpiWorld::abort(code);
}

}  // namespace

int ending_world(const MpiWorld& world, const std::function<int()>& verb) {
  try {
    return verb();
  } catch (const CommonError& error) {
    return world.rank() == 0 ? print(error.code(), error.what()) : static_cast<int>(error.code());
  } catch (const std::exception& error) {
    const Failure failure = failure_of(error);
    return end_world(world, failure.code, failure.text.c_str());
  }
}

JointRanks::JointRanks(Engine* of_launch) : engine(of_launch) {
  if (engine != nullptr) slot = host_slot_of(engine->transport());
}

void JointRanks::together(const std::function<void()>& body) const {
  constexpr int kOpenChannel = 0;
  if (engine == nullptr) return body();
  Group group(*engine, kOpenChannel);
  all_or_none(group, body);
}

int on_ranks(const std::function<int(Engine*)>& verb) {
  prepare_process();
  if (!one_of_several_tasks()) return verb(nullptr);
  MpiWorld world;
  Engine engine(world.transport());
  return ending_world(world, [&] { return verb(&engine); });
}

}  // namespace echelon::cli
