// SPDX-License-Identifier: Apache-2.0
// All choices of a config, each with the properties by which it excludes or requires others (config/combinations.hpp).
// Built once from the registries of config/traits/, then constant; usable from any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "config/traits/property.hpp"

namespace echelon::inline config {

struct Choice {
  std::string path;      // "exchange.codec", "optimizer.clip_norm"
  std::string value;     // the key's value as TOML; for a key that is off by default, a value that enables it
  std::string name;      // short name for tables: "topk", "clip_norm"
  bool worded = false;   // one of a key's words, of which exactly one is chosen; otherwise the key is on or off
  bool neutral = false;  // the default word
  Properties is = {};
  std::function<bool(const Config&)> chosen;

  std::string text() const;  // "exchange.codec = "topk"", "optimizer.clip_norm"
};

// Choices on one subject, which form rows and columns of the matrix: the words of one key, or keys that are on or off.
struct ChoiceAxis {
  std::string name;
  std::vector<Choice> choices;
};

const std::vector<ChoiceAxis>& choice_axes();
// Returns all words of this key, in the order of its table.
std::vector<const Choice*> words_of_key(const std::string& path);
// Returns the choices that the config makes, in the order of the axes. O(choices); the pointers are valid forever.
std::vector<const Choice*> choices_of(const Config& config);
// Whether any of the config's choices has the property.
bool any_choice_is(const Config& config, Property property);

}  // namespace echelon::inline config
