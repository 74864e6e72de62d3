// parallel.split = "auto": how many ranks share a model, and how, chosen for the ranks that there are.
//
// Every pipeline x tensor x space that the hosts allow is priced (parallel/split_price.hpp); the fastest whose largest
// rank stays below device.memory_limit_mb (parallel/footprint.hpp) is taken. Of those within 2 % of it the one that
// splits least is: less can go wrong with it.
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
  std::string refused;  // why it cannot be, of the model or the batch; empty where it can
  SplitPrice price;
  double samples_per_s = 0;  // of all replicas
  double memory = -1;        // bytes of the rank with the largest footprint; -1: not worked out, others are faster
};

struct SplitChoice {
  ParallelConfig parallel;  // as given, but for what was chosen
  std::vector<SplitCandidate> candidates;
  std::string report;  // why, for people
};

struct RankHosts {
  std::vector<int> of_rank;  // as Transport::hosts
  std::vector<std::string> names;
};

// MemoryError where nothing stays below the limit, ConfigError where nothing is possible.
SplitChoice choose_split(const Config& config, const Graph& whole, const RankHosts& hosts, const SampleCounts& samples,
                         const SplitCosts& costs);

}  // namespace echelon::inline parallel
