// SPDX-License-Identifier: Apache-2.0
// The measurement of `bench allreduce` between the ranks of an engine: those of its own launch, or of a study's cell.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "cli/options.hpp"
#include "comm/engine.hpp"
#include "comm/mpi/world.hpp"

namespace echelon::cli {

struct AllreduceRow {
  std::int64_t bytes = 0;
  std::string algorithm;  // "": the library's blocking call
  double p50_s = 0, p99_s = 0;
  // Totals of one sum over all ranks, counted at the transport; 0 for the library's call. `steps`: links in the longest
  // chain of dependent messages, from the plans, with no part cut into segments; 0 if the plans are too long to search.
  double wire_bytes = 0, messages = 0;
  int steps = 0;
};

// The bytes that a link has to carry at least.
inline double bus_bytes(std::int64_t bytes, int ranks) {
  return 2.0 * (ranks - 1) / ranks * static_cast<double>(bytes);
}

// All ranks; checks every sum. `world`: the library whose blocking call is measured too; null: none. On rank 0 `tell`
// gets the rows of each size once known; `left_out`: what was not measured, and why. ConfigError on all ranks.
std::vector<AllreduceRow> measure_allreduce(const BenchAllreduceOptions& options, Engine& engine, MpiWorld* world,
                                            const std::function<void(const std::vector<AllreduceRow>&)>& tell = {},
                                            std::vector<std::string>* left_out = nullptr);

}  // namespace echelon::cli
