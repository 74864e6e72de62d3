// The keys in which two configs differ.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline config {

struct KeyDifference {
  std::string key;          // "exchange.bucket_mb"; "model.layers" for any difference in [[model.layers]]
  std::string left, right;  // the values as TOML; of layers their number
};

// In the order of the effective config. `neutral_too`: also the keys that config_hash leaves out. Reads nothing, throws
// nothing.
std::vector<KeyDifference> differing_keys(const Config& left, const Config& right, bool neutral_too);

}  // namespace echelon::inline config
