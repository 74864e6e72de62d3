// SPDX-License-Identifier: Apache-2.0
#include "base/cores.hpp"

#include <omp.h>
#include <sched.h>

#include <algorithm>

namespace echelon::inline base {

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

int openmp_threads_at_most() { return omp_get_max_active_levels() < 1 ? 1 : std::max(1, omp_get_thread_limit()); }

}  // namespace echelon::inline base
