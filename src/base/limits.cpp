// SPDX-License-Identifier: Apache-2.0
#include "base/limits.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.hpp"

namespace echelon::inline base {
namespace {

constexpr rlim_t kFiles = 64, kStack = 256 << 10, kFileBytes = 8 << 20;
constexpr rlim_t kUsualFiles = 4096, kUsualStack = 8 << 20;
constexpr std::size_t kAddressSpace = std::size_t{512} << 20;

rlimit limit_of(int resource) {
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  ::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
  return limit;
}

void raise_limit(int resource, rlim_t usual) {
  rlimit limit = limit_of(resource);
  if (limit.rlim_cur >= usual) return;
  limit.rlim_cur = std::min(limit.rlim_max, usual);
  ::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
}

// The stack size of threads is taken from the limit at the start of the process.
void raise_stack_of_threads() {
  pthread_attr_t attributes;
  std::size_t bytes = 0;
  if (::pthread_getattr_default_np(&attributes) != 0) return;
  if (::pthread_attr_getstacksize(&attributes, &bytes) == 0 && bytes < kUsualStack &&
      ::pthread_attr_setstacksize(&attributes, kUsualStack) == 0)
    ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
}

void require_limit(int resource, rlim_t least, const char* name, rlim_t unit, const char* what) {
  const rlim_t is = limit_of(resource).rlim_cur;
  if (is >= least) return;
  throw EnvironmentError(
      fmt::format("ulimit {} {}: a rank needs at least {} ({}); raise it, or ask the administrator to", name, is / unit,
                  least / unit, what));
}

// pids.max of this process's control group, version 2 or 1; "" if there is none.
std::string most_tasks() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const bool v2 = line.starts_with("0::"), v1 = line.find(":pids:") != std::string::npos;
    if (!v2 && !v1) continue;
    const std::string folder = line.substr(line.rfind(':') + 1);
    std::string most;
    std::ifstream((v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pids") + folder + "/pids.max") >> most;
    if (!most.empty() && most != "max") return most;
  }
  return {};
}

void try_threads(int count) {
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::condition_variable wake;
  bool end = false;
  std::string trouble;
  try {
    for (int i = 0; i < count; ++i)
      threads.emplace_back([&] {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return end; });
      });
  } catch (const std::system_error&) {
    trouble = no_thread_text();
  }
  {
    const std::lock_guard lock(mutex);
    end = true;
  }
  wake.notify_all();
  for (std::thread& thread : threads) thread.join();
  if (!trouble.empty()) throw EnvironmentError(trouble);
}

void try_address_space() {
  const rlim_t is = limit_of(RLIMIT_AS).rlim_cur;
  if (is == RLIM_INFINITY) return;
  void* const range = ::mmap(nullptr, kAddressSpace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED)
    throw Error(kExitMemory,
                fmt::format("ulimit -v {}: besides its model a rank needs {} MiB of address space, most of which it "
                            "never touches; limit memory with a control group or Slurm's --mem instead",
                            is >> 10, kAddressSpace >> 20));
  ::munmap(range, kAddressSpace);
}

}  // namespace

void require_limits(int threads) {
  (void)std::signal(SIGXFSZ, SIG_IGN);
  raise_limit(RLIMIT_NOFILE, kUsualFiles);
  raise_limit(RLIMIT_STACK, kUsualStack);
  raise_stack_of_threads();
  require_limit(RLIMIT_NOFILE, kFiles, "-n", 1, "open files");
  require_limit(RLIMIT_STACK, kStack, "-s", 1 << 10, "KiB of stack");
  require_limit(RLIMIT_FSIZE, kFileBytes, "-f", 1 << 10, "KiB of a file");
  try_address_space();
  try_threads(threads);
}

std::string limits_of_process_text() {
  std::string text;
  const auto add = [&](const std::string& limit) { text += (text.empty() ? "; limits: " : ", ") + limit; };
  if (const rlim_t is = limit_of(RLIMIT_NPROC).rlim_cur; is != RLIM_INFINITY) add(fmt::format("ulimit -u {}", is));
  if (const rlim_t is = limit_of(RLIMIT_AS).rlim_cur; is != RLIM_INFINITY) add(fmt::format("ulimit -v {}", is >> 10));
  if (const rlim_t is = limit_of(RLIMIT_DATA).rlim_cur; is != RLIM_INFINITY) add(fmt::format("ulimit -d {}", is >> 10));
  if (const std::string most = most_tasks(); !most.empty()) add("pids.max " + most + " of the control group");
  return text;
}

std::string no_thread_text() {
  return "the operating system refuses to start more threads (EAGAIN): raise the limit, or start fewer "
         "(device.threads, ranks)" +
         limits_of_process_text();
}

}  // namespace echelon::inline base
