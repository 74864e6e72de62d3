// SPDX-License-Identifier: Apache-2.0
#include "cli/memory_text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace echelon::cli {
namespace {

constexpr double kMiB = 1 << 20;

std::string activations_text(const Footprint& memory) {
  if (memory.estimated) return fmt::format("activations about {} (twice the values)", bytes_text(memory.activations));
  return fmt::format("activations {}, scratch {}, packed weights {}", bytes_text(memory.activations),
                     bytes_text(memory.scratch), bytes_text(memory.packed));
}

constexpr const char* kCure =
    "a smaller batch, a larger batch.accumulation, a smaller evaluate.batch or a split model ([parallel]) needs less";

}  // namespace

double machine_memory_bytes() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
}

std::string memory_text(const Config& config, const Footprint& memory, const ReadMemory* reading) {
  const auto part = [](const char* name, double bytes) {
    return bytes > 0 ? fmt::format(", {} {}", name, bytes_text(bytes)) : "";
  };
  const std::string read =
      reading == nullptr
          ? fmt::format("up to {} of records", bytes_text(config.data.buffer_mb * kMiB))
          : fmt::format("{} to read its data: records {}{}, batches {}", bytes_text(reading->total()),
                        bytes_text(reading->records), part("a chunk while it is decoded", reading->decoding),
                        bytes_text(reading->batches));
  return fmt::format("{} a rank: weights {}, gradients {}, optimiser {}{}, {}{}{}; and {}", bytes_text(memory.total()),
                     bytes_text(memory.weights), bytes_text(memory.gradients), bytes_text(memory.optimiser),
                     part("strategy", memory.strategy), activations_text(memory),
                     part("evaluation", memory.evaluation) + part("uploads", memory.uploads),
                     part("in host memory of the exchange", memory.host) +
                         part("in host memory of rank 0 for checkpoints", memory.checkpoint),
                     read);
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

}  // namespace echelon::cli
