// parallel.split = "auto": the choice of pipeline, tensor and space for the ranks of a launch.
//
// Every pipeline x tensor x space whose product divides the number of ranks and whose groups fit the hosts is a
// candidate. Its step time is predicted (parallel/split_price.hpp). Chosen is the one with the most samples/s whose
// largest rank stays below device.memory_limit_mb, or without one below the memory of its card
// (parallel/footprint.hpp); of those within 2 % of it, the one with the smallest groups.
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
  std::string refused;  // why the model or the batch cannot be split so; empty: it can
  SplitPrice price;
  double samples_per_s = 0;  // of all replicas; 0: refused
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

// A pure function of its arguments, so that all ranks choose the same. MemoryError, with the nearest candidate, where
// none stays below the limit; ConfigError where every candidate is refused. `device_index`: the GPU on which memory is
// counted, which decides nothing.
SplitChoice choose_split(const Config& config, const Graph& whole, const RankHosts& hosts, const SampleCounts& samples,
                         const SplitCosts& costs, int device_index = 0);

}  // namespace echelon::inline parallel
