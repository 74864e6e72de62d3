// SPDX-License-Identifier: Apache-2.0
// The keys that only one strategy has, [exchange.<strategy>], are in one file per strategy, each field with its
// description.
//
// Each strategy has a struct of fields with their defaults and a template `describe(section)`, which adds each field
// with range and help text to the table of keys; `section` is a config::keys::Section (config/keys/section.hpp).
// config_hash leaves out keys that neutral_key added.
#pragma once

namespace echelon::inline config {

// The table of a strategy without keys of its own.
struct NoKeys {
  template <class Section>
  static void describe(Section&) {}
};

}  // namespace echelon::inline config
