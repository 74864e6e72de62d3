// SPDX-License-Identifier: Apache-2.0
#include "model/device_options.hpp"

#include "base/error.hpp"
#include "base/processor.hpp"
#include "device/device.hpp"
#include "device/onednn/onednn.hpp"

namespace echelon::inline model {

DeviceOptions device_options(const DeviceConfig& config, int threads) {
  const bool on_cpu = config.kind == "onednn" || (config.kind == "auto" && !means_gpu(config.kind));
  if (on_cpu && is_half(config.dtype) && !config.emulate_halves && !multiplies_halves(config.dtype))
    throw EnvironmentError(halves_problem(config.dtype));
  if (on_cpu && config.tf32 && !multiplies_bf16()) throw EnvironmentError(bf16_products_problem());
  DeviceOptions options;
  options.threads = threads;
  options.emulate_halves = config.emulate_halves;
  options.tf32 = config.tf32;
  options.allow_fallback = config.allow_fallback;
  options.workspace_bytes = static_cast<std::int64_t>(config.workspace_mb * (1 << 20));
  options.memory_limit_bytes = static_cast<std::int64_t>(config.memory_limit_mb * (1 << 20));
  options.paced_gflops = config.paced_gflops;
  options.paced_gb_per_s = config.paced_gb_per_s;
  options.paced_table = config.paced_table;
  return options;
}

std::optional<StepPaceOptions> pace_options(const DeviceConfig& config, std::uint64_t seed, int rank) {
  if (config.pace_ms == 0) return {};
  StepPaceOptions options;
  options.step_s = config.pace_ms > 0 ? 1e-3 * config.pace_ms : 0;
  options.jitter = config.pace_jitter;
  options.spread = config.pace_spread;
  if (static_cast<std::size_t>(rank) < config.pace_factors.size())
    options.factor = config.pace_factors[static_cast<std::size_t>(rank)];
  options.seed = seed;
  options.rank = rank;
  if (!config.paced_table.empty()) options.times.table = read_paced_table(config.paced_table);
  options.times.gflops = config.paced_gflops;
  options.times.gb_per_s = config.paced_gb_per_s;
  return options;
}

}  // namespace echelon::inline model
