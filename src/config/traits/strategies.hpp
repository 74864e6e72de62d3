// SPDX-License-Identifier: Apache-2.0
// Every strategy with its properties. A new strategy needs a line here, its folder exchange/<family>/ with entry.cpp,
// and <name>_step_s in planner/; if it has keys of its own, their file config/strategies/<name>.hpp, included here.
//
// These declarations decide which strategy can be combined with what (config/combinations.cpp) and which keys it reads
// (config/unfit.cpp).
#pragma once

#include "config/strategies/asynchronous.hpp"
#include "config/strategies/averaging.hpp"
#include "config/strategies/backup.hpp"
#include "config/strategies/elastic.hpp"
#include "config/strategies/gossip.hpp"
#include "config/strategies/keys.hpp"
#include "config/strategies/noloco.hpp"
#include "config/strategies/server.hpp"
#include "config/strategies/stale_synchronous.hpp"
#include "config/strategies/strom.hpp"
#include "config/traits/words.hpp"

namespace echelon::inline config {

struct StrategyTraits {
  std::string_view name;
  std::string_view help = {};    // of this word of exchange.strategy
  bool whole_parameters = true;  // the updating rank has whole parameters and whole gradients
  bool measures_parts = false;   // if not: sums norms of parameters and gradients over the ranks that hold the parts
  bool carries_codes = true;     // gradients may be sent as codec messages
  bool cuts_codes = true;        // segment_kb also cuts coded messages
  bool tracks_rows = true;       // tracks which rows of sparse embeddings a step touches on any replica
  bool local_steps = false;      // replicas take their own optimiser steps, by the gradients of their own samples
  bool own_pace = false;         // asynchronous replicas: they count their own steps (exchange/progress.hpp)
  bool skips_steps = false;      // a late replica skips steps that the others have done without it
  bool goes_on_without = false;  // the remaining workers continue without lost ones (Rescues)
  Words reads = {};              // keys of [exchange] that this strategy reads and some others do not
  Words tables = {};             // strategies whose tables [exchange.<name>] it reads besides its own

  // Whether the all-reduce of exchange.algorithm sums gradients, in its order.
  constexpr bool all_reduces() const { return reads.contains("algorithm"); }
  // Whether it sums the gradients of all replicas in every step.
  constexpr bool sums_gradients() const { return all_reduces() && !local_steps; }
  constexpr bool has_servers() const { return reads.contains("servers"); }
  // Whether it reads [exchange.<strategy>].
  constexpr bool reads_table(std::string_view strategy) const { return strategy == name || tables.contains(strategy); }
};

// clang-format off
// One line per strategy: its name, the struct of its own table [exchange.<name>], and its properties.
#define ECHELON_STRATEGIES(X)                                                                                       \
  X(synchronous, NoKeys, .help = "all-reduce of gradients", .reads = {"algorithm", "overlap", "reduction"})         \
  X(averaging, AveragingKeys, .help = "local steps, weights averaged every H steps",                                \
    .tracks_rows = false, .local_steps = true, .goes_on_without = true, .reads = {"algorithm"})                     \
  X(elastic, ElasticKeys, .help = "local steps pulled towards a common centre (EASGD)",                             \
    .tracks_rows = false, .local_steps = true, .goes_on_without = true, .reads = {"algorithm"})                     \
  X(asynchronous, AsynchronousKeys, .help = "parameter servers at which no worker waits for another",               \
    .cuts_codes = false, .tracks_rows = false, .local_steps = true, .own_pace = true, .goes_on_without = true,      \
    .reads = {"servers"}, .tables = {"server"})                                                                     \
  X(stale_synchronous, StaleSynchronousKeys,                                                                        \
    .help = "as asynchronous, but a worker waits if it is too far ahead of the slowest (SSP)",                      \
    .cuts_codes = false, .tracks_rows = false, .local_steps = true, .own_pace = true, .goes_on_without = true,      \
    .reads = {"servers"}, .tables = {"asynchronous", "server"})                                                     \
  X(gossip, GossipKeys,                                                                                             \
    .help = "local steps, mixed with the weights of a few neighbours after each (D-PSGD, stochastic gradient push)", \
    .carries_codes = false, .tracks_rows = false, .local_steps = true, .goes_on_without = true,                     \
    .reads = {"algorithm"})                                                                                         \
  X(noloco, NoLoCoKeys,                                                                                             \
    .help = "local steps; every H steps an outer momentum step with the mean of a small random group (NoLoCo)",     \
    .carries_codes = false, .tracks_rows = false, .local_steps = true, .goes_on_without = true,                     \
    .reads = {"algorithm"})                                                                                         \
  X(strom, StromKeys,                                                                                               \
    .help = "no server, each replica sends every other the few entries of its accumulated update that exceed a "    \
            "threshold",                                                                                            \
    .carries_codes = false, .tracks_rows = false, .local_steps = true, .goes_on_without = true)                     \
  X(server, ServerKeys, .help = "parameter servers update the weights",                                             \
    .whole_parameters = false, .measures_parts = true, .cuts_codes = false, .tracks_rows = false,                   \
    .reads = {"servers"})                                                                                           \
  X(backup, BackupKeys,                                                                                             \
    .help = "parameter servers that take the first gradients of each step and drop those of late replicas",         \
    .whole_parameters = false, .carries_codes = false, .cuts_codes = false, .tracks_rows = false,                   \
    .skips_steps = true, .goes_on_without = true, .reads = {"servers"}, .tables = {"server"})
// clang-format on

#define X(strategy, Keys, ...) StrategyTraits{.name = #strategy, __VA_ARGS__},
inline constexpr StrategyTraits kStrategies[] = {ECHELON_STRATEGIES(X)};
#undef X

// Returns the traits of a word that config/ has checked; defaults for an unknown name.
constexpr StrategyTraits strategy_traits(std::string_view name) {
  const StrategyTraits* known = find_traits(kStrategies, name);
  return known ? *known : StrategyTraits{.name = name};
}

}  // namespace echelon::inline config
