// Keys that do not fit the other keys of a config: nothing reads them, or their value is impossible. In a file they are
// refused; where a flag or variable changed a choice of the file, keys of the file are left out with a note.
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

// In the order of their sections. A key at its default is never among them once settle_defaults has run.
std::vector<UnfitKey> unfit_keys(const Config& config);
// ConfigError for the first of them.
void refuse_unfit_keys(const Config& config);

// Defaults that give way to other keys, so that the config holds what takes effect and its echo is accepted again:
// exchange.overlap = "buckets" where the optimiser needs every gradient first, exchange.priority = false where the
// library sums. Keys that were given (Config::origins) stay.
void settle_defaults(Config& config);

// Resets a key to its default, as if it had not been given. False where there is no such key. "model.layers" is one.
bool unset_key(Config& config, const std::string& path);

// Unsets keys that were given in the file and fit the config of the file alone (`file_alone`), but not the config after
// flags and variables (`config`); returns a note for each, "lenet.toml:7:1: <key> = <value> is left out: <reason>".
// Calls settle_defaults after each.
std::vector<std::string> give_way_to_overrides(Config& config, const Config& file_alone);

}  // namespace echelon::inline config
