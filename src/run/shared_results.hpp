// SPDX-License-Identifier: Apache-2.0
// Finds out whether all hosts see the folder to which the first rank writes its results.
#pragma once

#include <string>

#include "comm/group.hpp"
#include "job/launch.hpp"
#include "job/run_folder.hpp"

namespace echelon::inline run {

// Returns "results/..: h2 does not see what rank 0 on h1 writes there: .." on rank 0; "" if all hosts see it, and on
// other ranks. The first rank of each machine looks for rank 0's status.json, for `patience_s` at most. Collective,
// blocking: a sum of 8 bytes, and an all-gather of names if a host does not see it.
std::string unshared_results(const RunFolder& folder, const HostSlot& slot, Group& group, double patience_s = 2);

}  // namespace echelon::inline run
