// SPDX-License-Identifier: Apache-2.0
// The keys that only one strategy has, [exchange.<strategy>], are in one file per strategy, each field with its
// description.
//
// Each strategy has a struct of fields with their defaults and a template `describe(section)`, which adds each field
// with range and help text to the table of keys; `section` is a config::keys::Section (config/keys/section.hpp).
// config_hash leaves out keys that neutral_key added, and at their defaults those that follow section.younger(): the
// keys of a new strategy, and new keys of an old one, do not make other runs than before of old experiments.
//
// Three further members are optional:
//   static void choices(table)   calls table.choice(key, value, properties, chosen) for each key whose value excludes
//                                other choices (config/choices.hpp), in addition to what the strategy excludes
//   std::optional<Misfit> misfit() const   two of these keys that exclude each other, if the strategy is chosen
//   std::optional<std::string> unsteady(int workers) const   why training with these keys may diverge on more than one
//                                worker (config/unsteady.hpp), if the strategy is chosen
#pragma once

#include <string>

#include "config/traits/property.hpp"

namespace echelon::inline config {

struct Misfit {
  std::string key;  // the key to blame, without its section
  std::string why;  // the message, with the nearest valid values
};

// The table of a strategy without keys of its own.
struct NoKeys {
  template <class Section>
  static void describe(Section&) {}
};

}  // namespace echelon::inline config
