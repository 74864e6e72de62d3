// SPDX-License-Identifier: Apache-2.0
// [exchange.asynchronous]: the keys of strategy "asynchronous" (exchange/asynchronous/), which "stale_synchronous"
// reads too.
#pragma once

#include <cstdint>

#include "config/strategies/keys.hpp"

namespace echelon::inline config {

// The factor on a worker's update.
enum class AsyncRate : std::uint8_t { full, sqrt, share };
// The side that holds the optimiser's states and applies its rule.
enum class AsyncStates : std::uint8_t { worker, server };

// The memory in which servers keep the weights and compute.
enum class ServedMemory : std::uint8_t { host, device };

struct AsynchronousKeys {
  std::int64_t soft = 1;
  std::int64_t drop_above = -1;
  double staleness_scale = 0;
  AsyncRate rate = AsyncRate::share;
  AsyncStates states = AsyncStates::worker;
  ServedMemory memory = ServedMemory::host;
  double delay_compensation = 0;
  double compensation_decay = 0;

  template <class Section>
  static void describe(Section& section) {
    section.key("soft", &AsynchronousKeys::soft, section.range(1, 1e6),
                "soft synchronisation: number of updates, of any workers, that a server applies together");
    section.key("drop_above", &AsynchronousKeys::drop_above, section.range(-1, 1e9),
                "updates of a larger staleness are dropped and counted; -1: none");
    section.key("staleness_scale", &AsynchronousKeys::staleness_scale, section.range(0, 1e6),
                "updates are multiplied by this / max(1, staleness); 0: off");
    section.key("rate", &AsynchronousKeys::rate, section.words({"full", "sqrt", "share"}),
                "factor of a worker's update: full: 1; share: its share of a step's samples, 1 / workers where they "
                "are equal; sqrt: the root of that");
    section.key("states", &AsynchronousKeys::states, section.words({"worker", "server"}),
                "worker: each worker applies the optimiser with states of its own and sends the change of its weights; "
                "server: workers send gradients, and the servers apply the optimiser with states of theirs");
    section.key(
        "memory", &AsynchronousKeys::memory, section.words({"host", "device"}),
        "where servers keep the weights, with all that belongs to them, and compute: host: host memory; device: "
        "the memory of the rank's device (device.kind)");
    section.key("delay_compensation", &AsynchronousKeys::delay_compensation, section.range(0, 1e6),
                "lambda of DC-ASGD: a gradient g is corrected by lambda g^2 (W - weights that g was computed on); "
                "0: off");
    section.key("compensation_decay", &AsynchronousKeys::compensation_decay, section.range(0, 0.999999),
                "adaptive DC-ASGD: lambda is divided by the root of a running mean of g^2 with this decay (0.95); "
                "0: lambda is constant");
  }
  template <class Table>
  static void choices(Table& table) {
    using P = Property;
    table.choice("states", "\"server\"", {P::parts_of_updates, P::unmeasured_parts, P::needs_all_workers},
                 [](const AsynchronousKeys& keys) { return keys.states == AsyncStates::server; });
  }
};

}  // namespace echelon::inline config
