// SPDX-License-Identifier: Apache-2.0
// [exchange.backup]: the keys of strategy "backup" (exchange/backup/).
#pragma once

#include <algorithm>
#include <cstdint>

#include "config/strategies/keys.hpp"

namespace echelon::inline config {

struct BackupKeys {
  std::int64_t replicas = -1;
  std::int64_t period = 100;

  // Returns the number of these workers that a step does not wait for.
  constexpr std::int64_t of(std::int64_t workers) const {
    if (workers == 1) return 0;
    return replicas >= 0 ? replicas : std::max<std::int64_t>(1, workers / 10);
  }

  template <class Section>
  static void describe(Section& section) {
    section.key("replicas", &BackupKeys::replicas, section.range(-1, 65535),
                "number of replicas that a step does not wait for, less than there are workers; 0: synchronous; -1: a "
                "tenth of the workers, at least 1");
    section.key("period", &BackupKeys::period, section.range(1, 1e9),
                "number of steps between two meetings, where all replicas are waited for, compared and saved, and "
                "signals are followed; the end of an epoch is one too");
  }
};

}  // namespace echelon::inline config
