// What a config chooses between, each choice with the properties by which others mind it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "config/traits/property.hpp"

namespace echelon::inline config {

struct Choice {
  std::string path;      // "exchange.codec", "optimizer.clip_norm"
  std::string value;     // of the key, as TOML; of a key that is off by default, one that turns it on
  std::string name;      // for tables: "topk", "clip_norm"
  bool worded = false;   // a word of its key, of which one is chosen always; else on or off
  bool neutral = false;  // the default word
  Properties is = {};
  std::function<bool(const Config&)> chosen;

  std::string text() const;  // "exchange.codec = "topk"", "optimizer.clip_norm"
};

// Choices that people look for in one place: the words of one key, or keys that are on or off.
struct ChoiceAxis {
  std::string name;
  std::vector<Choice> choices;
};

const std::vector<ChoiceAxis>& choice_axes();
// All words of this key, in the order of its table.
std::vector<const Choice*> words_of_key(const std::string& path);
// What the config chose, in the order of the axes.
std::vector<const Choice*> choices_of(const Config& config);

}  // namespace echelon::inline config
