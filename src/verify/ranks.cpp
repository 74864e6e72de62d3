// SPDX-License-Identifier: Apache-2.0
#include "verify/ranks.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "base/check.hpp"
#include "base/error.hpp"
#include "comm/local/local.hpp"

namespace echelon::verify {
namespace {

struct Crew {
  std::mutex mutex;
  std::condition_variable left;
  std::vector<bool> running;
  int still = 0;
  int failed_rank = -1;
  std::exception_ptr error;
};

void run_one(int rank, const std::function<void(std::unique_ptr<Transport>)>& body, LocalWorld& world,
             std::unique_ptr<Transport> transport, Crew& crew) {
  set_thread_rank(rank);
  std::exception_ptr error;
  try {
    body(std::move(transport));
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(crew.mutex);
  if (error && !crew.error) {
    crew.error = error;
    crew.failed_rank = rank;
    end_local_world(world, fmt::format("rank {} failed", rank));
  }
  crew.running[static_cast<std::size_t>(rank)] = false;
  --crew.still;
  crew.left.notify_all();
}

[[noreturn]] void end_process(const Crew& crew, double deadline_s) {
  std::string names;
  for (std::size_t r = 0; r < crew.running.size(); ++r)
    if (crew.running[r]) names += (names.empty() ? "" : ", ") + std::to_string(r);
  std::fprintf(stderr, "ranks still running after %g s: %s\n", deadline_s, names.c_str());
  std::fflush(nullptr);
  std::_Exit(kExitLostRank);
}

}  // namespace

void run_ranks(int ranks, const std::function<void(std::unique_ptr<Transport>)>& body, double deadline_s,
               const std::vector<int>& hosts) {
  deadline_s *= ranks_patience;
  const auto world = new_local_world(ranks, hosts);
  Crew crew;
  crew.running.assign(static_cast<std::size_t>(ranks), true);
  crew.still = ranks;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank, transport = local_transport(world, rank)]() mutable {
      run_one(rank, body, *world, std::move(transport), crew);
    });
  {
    std::unique_lock lock(crew.mutex);
    const auto limit = std::chrono::system_clock::now() + std::chrono::duration<double>(deadline_s);
    if (!crew.left.wait_until(lock, limit, [&] { return crew.still == 0; })) end_process(crew, deadline_s);
  }
  for (std::thread& thread : threads) thread.join();
  if (!crew.error) return;
  try {
    std::rethrow_exception(crew.error);
  } catch (const std::exception& e) {
    throw std::runtime_error(fmt::format("rank {}: {}", crew.failed_rank, e.what()));
  }
}

}  // namespace echelon::verify
