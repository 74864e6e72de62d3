// SPDX-License-Identifier: Apache-2.0
// [exchange.server]: the keys of strategy "server" (exchange/server/), which other strategies with servers read too.
#pragma once

#include <cstdint>

#include "config/strategies/keys.hpp"

namespace echelon::inline config {

// The unit of distribution over servers. ranges: each server holds an even part of each bucket; variables: whole
// parameters.
enum class ServerPartition : std::uint8_t { ranges, variables };

struct ServerKeys {
  std::int64_t ranks = 0;
  ServerPartition partition = ServerPartition::ranges;

  template <class Section>
  static void describe(Section& section) {
    section.neutral_key(
        "ranks", &ServerKeys::ranks, section.range(0, 65536),
        "number of dedicated server ranks, the last ones, which do not train; 0: servers inside the workers");
    section.key("partition", &ServerKeys::partition, section.words({"ranges", "variables"}),
                "ranges: each server holds an even part of every bucket; variables: each holds whole parameters, the "
                "largest distributed first");
  }
  template <class Table>
  static void choices(Table& table) {
    table.choice("ranks", "1", {Property::whole_model_ranks}, [](const ServerKeys& keys) { return keys.ranks > 0; });
  }
};

}  // namespace echelon::inline config
