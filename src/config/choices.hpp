// All choices of a config, each with the properties by which it excludes or requires others (config/combinations.hpp).
// Built once from the registries of config/traits/; constant afterwards, any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "config/traits/property.hpp"

namespace echelon::inline config {

struct Choice {
  std::string path;      // "exchange.codec", "optimizer.clip_norm"
  std::string value;     // of the key, as TOML; of a key that is off by default, a value that enables it
  std::string name;      // for tables: "topk", "clip_norm"
  bool worded = false;   // one word of its key, exactly one of which is chosen; else the key is on or off
  bool neutral = false;  // the default word
  Properties is = {};
  std::function<bool(const Config&)> chosen;

  std::string text() const;  // "exchange.codec = "topk"", "optimizer.clip_norm"
};

// Choices of one subject, a row and column group of the matrix: the words of one key, or keys that are on or off.
struct ChoiceAxis {
  std::string name;
  std::vector<Choice> choices;
};

const std::vector<ChoiceAxis>& choice_axes();
// All words of this key, in the order of its table.
std::vector<const Choice*> words_of_key(const std::string& path);
// The choices that the config made, in the order of the axes. O(choices); pointers are valid for ever.
std::vector<const Choice*> choices_of(const Config& config);
// Whether one of these has the property.
bool any_choice_is(const Config& config, Property property);

}  // namespace echelon::inline config
