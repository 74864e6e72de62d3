// The keys of a strategy alone, [exchange.<strategy>]: one file a strategy, field and description together.
//
// A struct of fields with their defaults and a template `describe(section)`, which adds each field with range and help
// text to the table of keys; `section` is a config::keys::Section (config/keys/section.hpp). A key added by neutral_key
// is not in config_hash.
#pragma once

namespace echelon::inline config {

// For a strategy without keys of its own.
struct NoKeys {
  template <class Section>
  static void describe(Section&) {}
};

}  // namespace echelon::inline config
