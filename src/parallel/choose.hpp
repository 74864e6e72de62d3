// SPDX-License-Identifier: Apache-2.0
// parallel.split = "auto": the choice of pipeline, tensor and space for the ranks of a launch.
//
// Every pipeline x tensor x space whose product divides the number of ranks and whose groups fit the hosts is a
// candidate, and its step time is predicted (parallel/split_price.hpp). The fastest in samples/s is chosen among those
// whose largest rank stays below device.memory_limit_mb or, if that is not set, below the memory of its card
// (parallel/footprint.hpp); among candidates within 2 % of it, the one with the smallest groups.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "model/graph.hpp"
#include "parallel/footprint.hpp"
#include "parallel/mesh.hpp"
#include "parallel/split_price.hpp"

namespace echelon::inline parallel {

struct SplitCandidate {
  ParallelConfig parallel;
  Mesh mesh;
  std::string refused;  // why the model or the batch cannot be split in this way; empty: it can
  SplitPrice price;
  double samples_per_s = 0;  // over all replicas; 0: refused
  double memory = -1;        // bytes of the rank with the largest footprint; -1: not computed, as others are faster;
                             // infinite: no device can even address them
};

struct SplitChoice {
  ParallelConfig parallel;                 // the config's with split = "given" and the chosen factors
  std::vector<SplitCandidate> candidates;  // fastest first, refused ones last
  std::string report;                      // the table of candidates, for people
};

struct RankHosts {
  std::vector<int> of_rank;        // index of the host by rank, as Transport::hosts returns it
  std::vector<std::string> names;  // by host
};

// A pure function of its arguments, so that all ranks make the same choice. MemoryError, with the nearest candidate, if
// none stays below the limit; ConfigError if every candidate is refused. `device_index` is the GPU on which memory is
// counted; it does not affect the choice. `exchange` counts the memory of strategy and codec.
SplitChoice choose_split(const Config& config, const Graph& whole, const RankHosts& hosts, const SampleCounts& samples,
                         const SplitCosts& costs, CountArenas exchange, int device_index = 0);

}  // namespace echelon::inline parallel
