// SPDX-License-Identifier: Apache-2.0
// echelon sweep micro: finds the largest micro-batch that fits into a rank's memory, by the footprint that `check`
// prints and `train` allocates.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/error.hpp"
#include "base/quantities.hpp"
#include "base/text.hpp"
#include "cli/foresee_launch.hpp"
#include "cli/options.hpp"
#include "config/parse.hpp"
#include "device/device.hpp"
#include "parallel/memory_limit.hpp"

namespace echelon::cli {
namespace {

constexpr double kMiB = 1 << 20;

double largest_of(const LaunchMemory& launch) {
  double most = 0;
  for (const Footprint& rank : launch.of_ranks) most = std::max(most, rank.total());
  return most;
}

class Search {
 public:
  Search(CheckOptions launch, double limit_bytes) : launch_(std::move(launch)) {
    if (limit_bytes > 0) launch_.sets.push_back(fmt::format("device.memory_limit_mb={}", limit_bytes / kMiB));
    const LaunchMemory as_written = foresee_memory(launch_);
    config_ = as_written.config;
    if (as_written.of_ranks.empty())
      throw ConfigError("sweep micro: the memory of parallel.split = \"auto\" cannot be predicted; choose a split");
    if (!config_.batch.shares.empty())
      throw ConfigError("sweep micro: batch.shares makes micro-batches of different sizes; leave it out");
    if (config_.device.memory_limit_mb == 0 && means_gpu(config_.device.kind))
      throw ConfigError("sweep micro: the memory of the GPU is not known here; give it, e.g. --memory 40GB");
    const auto& plan = as_written.batch;
    const auto replicas = static_cast<std::int64_t>(plan.micro.size());
    step_ = plan.accumulation * (config_.batch.scale_with_replicas ? 1 : replicas);
    most_ = std::max<std::int64_t>(1, as_written.samples / (plan.accumulation * replicas));
  }

  // Memory of a launch with this micro-batch on every rank.
  LaunchMemory at(std::int64_t micro) const {
    CheckOptions launch = launch_;
    launch.sets.push_back(fmt::format("batch.global={}", micro * step_));
    return foresee_memory(launch);
  }
  std::optional<LaunchMemory> fitting(std::int64_t micro) const {
    LaunchMemory launch = at(micro);
    try {
      require_memory(launch.config, launch.of_ranks);
      return launch;
    } catch (const MemoryError&) {
      return {};
    }
  }
  std::int64_t most() const { return most_; }  // the number of samples available
  std::int64_t global_of(std::int64_t micro) const { return micro * step_; }
  const Config& config() const { return config_; }

 private:
  CheckOptions launch_;
  Config config_;
  std::int64_t step_ = 1, most_ = 1;
};

// The largest micro-batch that fits; 0: none. Memory grows with the micro-batch. O(log most) footprints.
std::int64_t largest_micro(const Search& search) {
  std::int64_t fits = 0, above = 1;
  while (above <= search.most() && search.fitting(above)) fits = above, above *= 2;
  above = std::min(above, search.most() + 1);
  while (above - fits > 1) {
    const std::int64_t middle = fits + (above - fits) / 2;
    (search.fitting(middle) ? fits : above) = middle;
  }
  return fits;
}

}  // namespace

int run_sweep_micro(const SweepMicroOptions& options) {
  const double limit = options.memory.empty() ? 0 : static_cast<double>(parse_bytes(options.memory, "--memory"));
  const Search search(options.launch, limit);
  const std::int64_t micro = largest_micro(search);
  if (micro == 0) {
    const LaunchMemory least = search.at(1);
    require_memory(least.config, least.of_ranks);  // throws, with advice
  }
  const double limit_mb = search.config().device.memory_limit_mb;
  const std::string of = limit_mb > 0 ? " of " + bytes_text(limit_mb * kMiB)
                                      : fmt::format(", on hosts of {}", bytes_text(machine_memory_bytes()));
  fmt::print("micro-batch {}   {} a rank{}\n", micro, bytes_text(largest_of(search.at(micro))), of);
  if (micro == search.most())
    fmt::print("            {}   the data set has no more samples for a step\n", micro);
  else
    fmt::print("            {}   {} a rank: too much\n", micro + 1, bytes_text(largest_of(search.at(micro + 1))));
  fmt::print("batch.global = {}   with batch.accumulation = {}\n", search.global_of(micro),
             search.config().batch.accumulation);
  return kExitOk;
}

}  // namespace echelon::cli
