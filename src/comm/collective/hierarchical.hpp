// Node-aware all-reduce: inside every host a reduce, between hosts an all-reduce of what the owners hold, inside again
// a gather. 2(k-1) G in all as of a ring, but only 2(n-1) G of them between the n hosts (for an outer algorithm that
// moves no more).
//
// `inner` is one of halves_names() and leaves L parts on L ranks of each host, L being what the smallest host allows;
// part by part its owners of all hosts run `outer`, any all-reduce but this one and the library's.
#pragma once

#include <vector>

#include "comm/collective/algorithms.hpp"

namespace echelon::inline comm {

// All names that `outer` takes.
std::vector<std::string> outer_names();

}  // namespace echelon::inline comm
