// SPDX-License-Identifier: Apache-2.0
// Node-aware all-reduce: a reduce inside every host, an all-reduce between hosts of the parts that the owners hold, and
// a gather inside every host. It sends 2(k-1) G in all, as a ring does, but only 2(n-1) G of them between the n hosts
// (for an outer algorithm that sends no more), by L ranks of each host at the same time.
//
// `inner` is one of halves_names() and leaves L parts on L ranks of each host, where L is the largest number that the
// smallest host permits (one host with a single rank makes L = 1). The owners of each part, one per host, run `outer`:
// any all-reduce with a plan, except this one. Hosts come from AllreduceRequest::hosts; where it is empty, each rank is
// a host. Cho et al.: BlueConnect, SysML 2019.
#pragma once

#include <vector>

#include "comm/collective/algorithms.hpp"

namespace echelon::inline comm {

// All names that are valid for `outer`.
std::vector<std::string> outer_names();

}  // namespace echelon::inline comm
