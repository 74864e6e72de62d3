// Keys that do not fit what the other keys chose: ones that nothing reads, and ones that ask for what cannot be. In a
// file they are refused; where a flag or variable changed what a file chose, the file's keys give way with a note.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline config {

struct UnfitKey {
  std::string path;
  std::string reason;  // a sentence without its end
  std::string cure;
};

// In the order of their sections. A key at its default is never among them once settle_defaults has run.
std::vector<UnfitKey> unfit_keys(const Config& config);
// ConfigError for the first of them.
void refuse_unfit_keys(const Config& config);

// Defaults that give way to other keys, so that the config holds what takes effect and its echo is accepted again:
// exchange.overlap = "buckets" where the optimiser needs every gradient first, exchange.priority = false where the
// library sums. Values that were asked for stay.
void settle_defaults(Config& config);

// Back to the default, as if it had never been written. False where there is no such key. "model.layers" is one.
bool unset_key(Config& config, const std::string& path);

// Unsets keys that stand in the file and fit what the file chose (`file_alone`), but not what flags and variables made
// of it (`config`); gives a note for each, for people. settle_defaults is done.
std::vector<std::string> give_way_to_overrides(Config& config, const Config& file_alone);

}  // namespace echelon::inline config
