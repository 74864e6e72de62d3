// SPDX-License-Identifier: Apache-2.0
#include "cli/local_ranks.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "comm/local/local.hpp"
#include "job/launch.hpp"

namespace echelon::cli {

int on_local_ranks(int ranks, const std::function<int(Engine&)>& rank, const WrapTransport& wrap) {
  if (under_launcher())
    throw ConfigError(
        "--local-ranks starts the ranks itself: start the program without mpirun or srun, or leave the option out");
  std::vector<int> codes(static_cast<std::size_t>(ranks), kExitInternal);
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Transport>> transports = make_local_world(ranks);
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      set_thread_rank(r);
      try {
        std::unique_ptr<Transport> transport = std::move(transports[static_cast<std::size_t>(r)]);
        Engine engine(wrap ? wrap(std::move(transport)) : std::move(transport));
        codes[static_cast<std::size_t>(r)] = rank(engine);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "echelon: error: rank %d: %s\n", r, error.what());
        end_local_ranks(kExitInternal);
      }
    });
  for (std::thread& thread : threads) thread.join();
  return codes.front();
}

void end_local_ranks(int exit_code) {
  flush_log();
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

}  // namespace echelon::cli
