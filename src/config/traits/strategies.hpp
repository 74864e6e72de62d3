// Every strategy with its properties. Adding one: a line here, its body in exchange/<name>.cpp (or a folder of its
// own), and where it has keys of its own their file config/strategies/<name>.hpp, included here.
//
// What is declared here decides which strategy goes with what (config/combinations.cpp) and which keys it reads
// (config/unfit.cpp).
#pragma once

#include "config/strategies/asynchronous.hpp"
#include "config/strategies/averaging.hpp"
#include "config/strategies/backup.hpp"
#include "config/strategies/elastic.hpp"
#include "config/strategies/gossip.hpp"
#include "config/strategies/keys.hpp"
#include "config/strategies/server.hpp"
#include "config/strategies/stale_synchronous.hpp"
#include "config/strategies/strom.hpp"
#include "config/traits/words.hpp"

namespace echelon::inline config {

struct StrategyTraits {
  std::string_view name;
  bool whole_parameters = true;  // the rank that updates has whole parameters and whole gradients
  bool measures_parts = false;   // or norms of parameters and gradients are summed over ranks that have parts of them
  bool carries_codes = true;     // gradients may be sent as messages of a codec
  bool cuts_codes = true;        // segment_kb cuts coded messages too
  bool tracks_rows = true;       // tracks which rows of sparse embeddings a step touches on any replica
  bool local_steps = false;      // replicas take optimiser steps of their own, by gradients of their own samples
  bool own_pace = false;         // replicas count steps of their own, and meet on call alone (exchange/progress.hpp)
  bool skips_steps = false;      // a late replica leaves steps out that the others have done without it
  bool goes_on_without = false;  // workers that are left go on without lost ones (Strategy::rescue)
  Words reads = {};              // keys of [exchange] that this strategy reads and not every strategy does
  Words tables = {};             // strategies whose tables [exchange.<name>] it reads beside its own

  // Gradients are summed by the all-reduce that exchange.algorithm names, in its order.
  constexpr bool all_reduces() const { return reads.contains("algorithm"); }
  constexpr bool reads_table(std::string_view strategy) const { return strategy == name || tables.contains(strategy); }
};

// clang-format off
// The name, the keys of its own table [exchange.<name>], what it is.
#define ECHELON_STRATEGIES(X)                                                                      \
  X(synchronous, NoKeys, .reads = {"algorithm", "overlap", "reduction"})                           \
  X(averaging, AveragingKeys, .tracks_rows = false, .local_steps = true,                           \
    .goes_on_without = true, .reads = {"algorithm"})                                               \
  X(elastic, ElasticKeys, .tracks_rows = false, .local_steps = true, .goes_on_without = true,      \
    .reads = {"algorithm"})                                                                        \
  X(asynchronous, AsynchronousKeys, .cuts_codes = false, .tracks_rows = false,                     \
    .local_steps = true, .own_pace = true, .goes_on_without = true, .reads = {"servers"},      \
    .tables = {"server"})                                                                          \
  X(stale_synchronous, StaleSynchronousKeys, .cuts_codes = false, .tracks_rows = false,            \
    .local_steps = true, .own_pace = true, .goes_on_without = true, .reads = {"servers"},      \
    .tables = {"asynchronous", "server"})                                                          \
  X(gossip, GossipKeys, .carries_codes = false, .tracks_rows = false, .local_steps = true,         \
    .goes_on_without = true, .reads = {"algorithm"})                                               \
  X(strom, StromKeys, .carries_codes = false, .tracks_rows = false, .local_steps = true,           \
    .goes_on_without = true)                                                                       \
  X(server, ServerKeys, .whole_parameters = false, .measures_parts = true, .cuts_codes = false,    \
    .tracks_rows = false, .reads = {"servers"})                                                    \
  X(backup, BackupKeys, .whole_parameters = false, .carries_codes = false, .cuts_codes = false,    \
    .tracks_rows = false, .skips_steps = true, .goes_on_without = true, .reads = {"servers"},      \
    .tables = {"server"})
// clang-format on

#define X(strategy, Keys, ...) StrategyTraits{.name = #strategy, __VA_ARGS__},
inline constexpr StrategyTraits kStrategies[] = {ECHELON_STRATEGIES(X)};
#undef X

// Of a word that config/ has checked; an unknown name gets default traits.
constexpr StrategyTraits strategy_traits(std::string_view name) {
  const StrategyTraits* known = find_traits(kStrategies, name);
  return known ? *known : StrategyTraits{.name = name};
}

}  // namespace echelon::inline config
