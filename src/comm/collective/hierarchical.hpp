// Node-aware all-reduce: inside every host a reduce, between hosts an all-reduce of the parts that the owners hold,
// inside every host a gather. 2(k-1) G in all as in a ring, but only 2(n-1) G of them between the n hosts (for an outer
// algorithm that sends no more), by L ranks of each host at the same time.
//
// `inner` is one of halves_names() and leaves L parts on L ranks of each host, L being the most that the smallest
// host permits (one host of a single rank makes L = 1). For each part its owners, one a host, run `outer`: any
// all-reduce with a plan of its own but this one. Hosts come from AllreduceRequest::hosts; where it is empty each rank
// is a host. Cho et al.: BlueConnect, SysML 2019.
#pragma once

#include <vector>

#include "comm/collective/algorithms.hpp"

namespace echelon::inline comm {

// All names that `outer` takes.
std::vector<std::string> outer_names();

}  // namespace echelon::inline comm
