// SPDX-License-Identifier: Apache-2.0
// [exchange.stale_synchronous]: the key of strategy "stale_synchronous" (exchange/asynchronous/), which reads those of
// [exchange.asynchronous] too.
#pragma once

#include <cstdint>

#include "config/strategies/keys.hpp"

namespace echelon::inline config {

struct StaleSynchronousKeys {
  std::int64_t bound = 3;

  template <class Section>
  static void describe(Section& section) {
    section.key("bound", &StaleSynchronousKeys::bound, section.range(0, 1e9),
                "number of steps that a worker may be ahead of the slowest; 0: lock-step");
  }
};

}  // namespace echelon::inline config
