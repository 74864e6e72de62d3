// SPDX-License-Identifier: Apache-2.0
// Finds the keys in which two configs differ.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline config {

struct KeyDifference {
  std::string key;          // "exchange.bucket_mb"; "model.layers" for any difference in [[model.layers]]
  std::string left, right;  // the values as TOML; for layers, their number
};

// Returns the keys in the order of the effective config. `neutral_too` includes the keys that config_hash leaves out.
// Reads no files and does not throw.
std::vector<KeyDifference> differing_keys(const Config& left, const Config& right, bool neutral_too);

}  // namespace echelon::inline config
