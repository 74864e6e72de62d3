// SPDX-License-Identifier: Apache-2.0
#include "cli/memory_text.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace echelon::cli {
namespace {

constexpr double kMiB = 1 << 20;

std::string activations_text(const Footprint& memory) {
  if (memory.estimated) return fmt::format("activations about {} (twice the values)", bytes_text(memory.activations));
  return fmt::format("activations {}, scratch {}, packed weights {}", bytes_text(memory.activations),
                     bytes_text(memory.scratch), bytes_text(memory.packed));
}

}  // namespace

std::string memory_text(const Config& config, const Footprint& memory, const ReadMemory* reading) {
  const auto part = [](const char* name, double bytes) {
    return bytes > 0 ? fmt::format(", {} {}", name, bytes_text(bytes)) : "";
  };
  const std::string read = reading == nullptr
                               ? fmt::format("up to {} of records", bytes_text(config.data.buffer_mb * kMiB))
                               : fmt::format("{} to read its data: records {}{}, batches {}",
                                             bytes_text(reading->total()), bytes_text(reading->records),
                                             part("a chunk while it is decoded", reading->decoding) +
                                                 part("samples while they are made", reading->making),
                                             bytes_text(reading->batches));
  return fmt::format("{} a rank: weights {}, gradients {}, optimiser {}{}, {}{}{}; and {}", bytes_text(memory.total()),
                     bytes_text(memory.weights), bytes_text(memory.gradients), bytes_text(memory.optimiser),
                     part("strategy", memory.strategy), activations_text(memory),
                     part("evaluation", memory.evaluation) + part("uploads", memory.uploads),
                     part("in host memory of the exchange", memory.host) +
                         part("in host memory of rank 0 for checkpoints", memory.checkpoint),
                     read);
}

}  // namespace echelon::cli
