// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_time.hpp"

#include <sys/resource.h>

#include <atomic>

namespace echelon::inline base {
namespace {

std::atomic<double> before_run_s{0};

double of_process() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

void begin_cpu_time() { before_run_s = of_process(); }

double cpu_seconds() { return of_process() - before_run_s; }

}  // namespace echelon::inline base
