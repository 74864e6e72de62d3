// SPDX-License-Identifier: Apache-2.0
// Draws experiments: those of a corpus, with keys set, removed and renamed according to the parser's own table of keys.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/draws.hpp"

namespace echelon::fuzz {

class ConfigText {
 public:
  explicit ConfigText(std::vector<std::string> corpus);

  // Draws an experiment. Half of them have only valid values of known keys.
  std::string draw(Draws& draws) const;
  // Draws a setting: "section.key=value" or "ECHELON_SECTION_KEY=value".
  std::string draw_setting(Draws& draws) const;

 private:
  struct KnownKey {
    std::string section, name;
    std::vector<std::string> valid;    // values as written after "="
    std::vector<std::string> invalid;  // out of range, or of another type
  };

  const std::string& value_of(const KnownKey& key, bool valid, Draws& draws) const;
  void set_key(std::vector<std::string>& lines, bool valid, Draws& draws) const;
  void set_layer_key(std::vector<std::string>& lines, bool valid, Draws& draws) const;

  std::vector<std::string> corpus_, words_;
  std::vector<KnownKey> keys_, layer_keys_;
};

}  // namespace echelon::fuzz
