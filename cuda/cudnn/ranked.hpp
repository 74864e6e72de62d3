// SPDX-License-Identifier: Apache-2.0
// The order in which a library's algorithms are tried for one op, as plain numbers: independent of the library, so that
// it can be tested without one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace echelon::cuda {

struct Algorithm {
  int id = 0;  // cudnnConvolution{Fwd,BwdData,BwdFilter}Algo_t
  std::size_t workspace_bytes = 0;
  bool exact = true;  // to a few roundings of the dtype
};

// The deterministic algorithms of an op's kind, by exactness, each list in the order of trial if the library does not
// rank them.
struct Accepted {
  std::vector<int> exact;
  std::vector<int> inexact;  // deterministic too, but with two or three digits less; tried last
};

// Algorithms that replace the best one if the library refuses it at run time may enlarge a program's scratch to this,
// or to what the best one needs.
inline constexpr std::size_t kSpareWorkspaceBytes = std::size_t{64} << 20;

struct Ranked {
  std::vector<Algorithm> usable;       // best first
  std::vector<Algorithm> above_limit;  // the library could run these with more workspace
};

// `ranking`: the library's suggestions, best first. `workspace_of` returns bytes, or nothing if the library cannot run
// the algorithm on these shapes. Exact algorithms come first, in the order of the ranking, then inexact ones in that
// order.
inline Ranked rank_algorithms(const Accepted& accepted, const std::vector<int>& ranking,
                              const std::function<std::optional<std::size_t>(int)>& workspace_of,
                              std::size_t limit_bytes) {
  Ranked ranked;
  const auto place = [&](int id) { return std::find(ranking.begin(), ranking.end(), id) - ranking.begin(); };
  for (const bool exact : {true, false}) {
    std::vector<int> ids = exact ? accepted.exact : accepted.inexact;
    std::stable_sort(ids.begin(), ids.end(), [&](int a, int b) { return place(a) < place(b); });
    for (const int id : ids)
      if (const std::optional<std::size_t> bytes = workspace_of(id))
        (*bytes <= limit_bytes ? ranked.usable : ranked.above_limit).push_back({id, *bytes, exact});
  }
  const std::size_t spare_bytes =
      ranked.usable.empty() ? 0 : std::max(ranked.usable.front().workspace_bytes, kSpareWorkspaceBytes);
  std::erase_if(ranked.usable, [&](const Algorithm& other) { return other.workspace_bytes > spare_bytes; });
  return ranked;
}

}  // namespace echelon::cuda
