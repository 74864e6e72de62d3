// SPDX-License-Identifier: Apache-2.0
// The cores of this process, and the threads it may start on them.
#pragma once

namespace echelon::inline base {

int usable_cores();            // number of cores in the affinity mask of this process, at least 1
int openmp_threads_at_most();  // limit per team: OMP_THREAD_LIMIT; 1 if OMP_MAX_ACTIVE_LEVELS is 0

}  // namespace echelon::inline base
