// SPDX-License-Identifier: Apache-2.0
// Keys that do not fit the other keys of a config: nothing reads them, or their value is impossible. In a file they are
// errors. If a flag or variable changed a choice of the file, such keys of the file are left out with a note.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline config {

struct UnfitKey {
  std::string path;
  std::string reason;  // a sentence without its full stop
  std::string cure;    // "leave it out"
};

// Returns the keys in the order of their sections. After settle_defaults no key at its default is among them.
std::vector<UnfitKey> unfit_keys(const Config& config);
// Throws ConfigError for the first unfit key.
void refuse_unfit_keys(const Config& config);

// Adapts defaults to other keys, so that the config holds what takes effect and its echo is accepted again:
// exchange.overlap = "buckets" if the optimiser needs every gradient first, exchange.priority = false if a library
// sums. Keys that were given (Config::origins) do not change.
void settle_defaults(Config& config);

// Resets a key to its default as if it had not been given. Returns false for an unknown key. Accepts "model.layers".
bool unset_key(Config& config, const std::string& path);

// Unsets keys that were given in the file and fit the config of the file alone (`file_alone`), but not the config after
// flags and variables (`config`). Returns a note for each: "lenet.toml:7:1: <key> = <value> is left out: <reason>".
// Calls settle_defaults after each.
std::vector<std::string> give_way_to_overrides(Config& config, const Config& file_alone);

}  // namespace echelon::inline config
