// SPDX-License-Identifier: Apache-2.0
#include "parallel/memory_limit.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace echelon::inline parallel {
namespace {

constexpr double kMiB = 1 << 20;

constexpr const char* kCure =
    "a smaller batch, a larger batch.accumulation, a smaller evaluate.batch or a split model ([parallel]) needs less";

}  // namespace

double machine_memory_bytes() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
}

void require_memory(const Config& config, const std::vector<Footprint>& ranks) {
  const auto less = [](const Footprint& a, const Footprint& b) { return a.total() < b.total(); };
  const double most = std::max_element(ranks.begin(), ranks.end(), less)->total();
  const double limit = config.device.memory_limit_mb * kMiB;
  if (limit > 0) {
    if (most > limit)
      throw MemoryError(fmt::format("device.memory_limit_mb = {} is less than the {} that a rank takes; {}",
                                    config.device.memory_limit_mb, bytes_text(most), kCure));
    return;
  }
  if (means_gpu(config.device.kind)) return;
  double together = 0;
  for (const Footprint& rank : ranks) together += rank.total() + rank.host + rank.checkpoint;
  if (together > machine_memory_bytes())
    throw MemoryError(
        fmt::format("{} on one host take {}, but this machine has {}; {}. To plan for another machine, set "
                    "device.memory_limit_mb to what a rank may take there",
                    counted(static_cast<std::int64_t>(ranks.size()), "rank"), bytes_text(together),
                    bytes_text(machine_memory_bytes()), kCure));
}

}  // namespace echelon::inline parallel
