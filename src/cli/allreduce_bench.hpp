// What `bench allreduce` measures, between the ranks of an engine: of a launch of its own, or of a cell of a study.
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
  std::string algorithm;  // "" : the library's blocking call
  double p50_s = 0, p99_s = 0;
  // Of one sum, over all ranks: counted at the transport; 0 for the library's. Links in the longest chain of dependent
  // messages where no part is cut into segments, found from the plans; 0: the plans are too long to look.
  double wire_bytes = 0, messages = 0;
  int steps = 0;
};

// What a link has to carry at least.
inline double bus_bytes(std::int64_t bytes, int ranks) {
  return 2.0 * (ranks - 1) / ranks * static_cast<double>(bytes);
}

// All ranks; every sum is checked. `world`: whose blocking call is measured too; null: none. `tell`, on rank 0, gets
// the rows of a size once they are known; `left_out` what was not measured, and why. ConfigError on every rank alike.
std::vector<AllreduceRow> measure_allreduce(const BenchAllreduceOptions& options, Engine& engine, MpiWorld* world,
                                            const std::function<void(const std::vector<AllreduceRow>&)>& tell = {},
                                            std::vector<std::string>* left_out = nullptr);

}  // namespace echelon::cli
