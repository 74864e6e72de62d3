// SPDX-License-Identifier: Apache-2.0
// [exchange.elastic]: the keys of strategy "elastic" (exchange/averaging/elastic.cpp).
#pragma once

#include <cstdint>

#include "config/strategies/keys.hpp"

namespace echelon::inline config {

struct ElasticKeys {
  std::int64_t period = 10;
  double pull = 0.9;

  template <class Section>
  static void describe(Section& section) {
    section.key("period", &ElasticKeys::period, section.range(1, 1e9),
                "number of local steps between two exchanges with the centre; the end of an epoch exchanges too");
    section.key("pull", &ElasticKeys::pull, section.range(1e-6, 1),
                "beta: the centre moves by this fraction of its distance from the replicas' mean, each replica by "
                "pull / replicas of its distance from the centre");
  }
};

}  // namespace echelon::inline config
