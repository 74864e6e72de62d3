#include "model/device_options.hpp"

namespace echelon::inline model {

DeviceOptions device_options(const DeviceConfig& config, int threads) {
  DeviceOptions options;
  options.threads = threads;
  options.tf32 = config.tf32;
  options.memory_limit_bytes = static_cast<std::int64_t>(config.memory_limit_mb * (1 << 20));
  options.paced_gflops = config.paced_gflops;
  options.paced_gb_per_s = config.paced_gb_per_s;
  options.paced_table = config.paced_table;
  return options;
}

}  // namespace echelon::inline model
