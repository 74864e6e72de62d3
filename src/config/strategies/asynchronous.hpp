// [exchange.asynchronous]: the keys of strategy "asynchronous" (exchange/asynchronous/).
#pragma once

#include <cstdint>

#include "config/strategies/keys.hpp"

namespace echelon::inline config {

// What a worker's update is multiplied by.
enum class AsyncRate : std::uint8_t { full, sqrt, share };

struct AsynchronousKeys {
  std::int64_t soft = 1;
  std::int64_t drop_above = -1;
  double staleness_scale = 0;
  std::int64_t bound = -1;
  AsyncRate rate = AsyncRate::share;

  static constexpr int arenas(bool) { return 0; }  // as NoKeys

  template <class Section>
  static void describe(Section& section) {
    section.key("soft", &AsynchronousKeys::soft, section.range(1, 1e6),
                "soft synchronisation: number of updates, of any workers, that a server applies together");
    section.key("drop_above", &AsynchronousKeys::drop_above, section.range(-1, 1e9),
                "updates of a larger staleness are dropped and counted; -1: none");
    section.key("staleness_scale", &AsynchronousKeys::staleness_scale, section.range(0, 1e6),
                "updates are multiplied by this / max(1, staleness); 0: off");
    section.key("bound", &AsynchronousKeys::bound, section.range(-1, 1e9),
                "stale-synchronous parallel: number of steps that a worker may be ahead of the slowest; 0: lock-step; "
                "-1: no bound");
    section.key("rate", &AsynchronousKeys::rate, section.words({"full", "sqrt", "share"}),
                "factor of a worker's update: full: 1; share: its share of a step's samples, 1 / workers where they "
                "are equal; sqrt: the root of that");
  }
};

}  // namespace echelon::inline config
