// SPDX-License-Identifier: Apache-2.0
// echelon verify: tests on this machine, build, launch and file system that the program keeps its promises.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/on_ranks.hpp"
#include "cli/options.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "comm/local/local.hpp"
#include "comm/mpi/world.hpp"
#include "config/faults.hpp"
#include "job/launch.hpp"
#include "job/signals.hpp"
#include "verify/runner.hpp"

namespace echelon::cli {
namespace {

namespace fs = std::filesystem;

// Rank 0 creates the folder and sends its name and host to the other ranks.
void settle(verify::VerifyContext& context, const std::string& parent) {
  Engine engine(context.transport());
  Group group(engine, 0);
  const Transport& transport = engine.transport();
  for (const int host : transport.hosts())
    context.hosts.push_back(transport.host_names()[static_cast<std::size_t>(host)]);
  context.rank = engine.rank(), context.ranks = engine.size();
  std::string folder = fs::absolute(parent + "/verify-XXXXXX").string(), error;
  if (context.rank == 0) {
    try {
      make_folders(parent);
      if (::mkdtemp(folder.data()) == nullptr)
        throw EnvironmentError(fmt::format("{}: cannot be created: {}", folder, std::strerror(errno)));
    } catch (const Error& wrong) {
      error = wrong.what();
    }
  }
  context.folder = group.of_first(folder);
  error = group.of_first(error);
  if (!error.empty()) throw EnvironmentError(error);
  if (group.max(fs::exists(context.folder) ? 0 : 1) > 0)
    throw EnvironmentError(
        fmt::format("{} is not visible to every rank: --dir must name a folder on a file system that all hosts share",
                    context.folder));
}

int run_on(verify::VerifyContext context, const VerifyOptions& options) {
  context.quick = options.quick;
  context.program = fs::read_symlink("/proc/self/exe").string();
  settle(context, options.dir);
  if (context.rank == 0) {
    std::printf("%s on %s, in %s\n\n", counted(context.ranks, "rank").c_str(), context.hosts.front().c_str(),
                context.folder.c_str());
    std::fflush(stdout);
  }
  const int code = verify::run_verification(context, verify::all_checks(options.quick),
                                            {.junit = options.junit, .fault = options.fault});
  if (context.rank == 0 && code == kExitOk) {
    std::error_code ignored;
    fs::remove_all(context.folder, ignored);
  }
  return code;
}

}  // namespace

int run_verify(const VerifyOptions& options) {
  if (!options.fault.empty()) (void)parse_fault(options.fault);
  prepare_process();
  take_early_signals();
  if (!under_launcher()) {
    const SignalWatch signals;
    verify::VerifyContext context;
    context.transport = [] { return std::move(make_local_world(1).front()); };
    return run_on(std::move(context), options);
  }
  MpiWorld world;
  const SignalWatch signals;
  return ending_world(world, [&] {
    verify::VerifyContext context;
    context.transport = [&world] { return world.transport(); };
    return run_on(std::move(context), options);
  });
}

}  // namespace echelon::cli
