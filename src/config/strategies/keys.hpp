// The keys of a strategy alone, [exchange.<strategy>]: one file a strategy, field and description together.
//
// A struct of fields with their defaults and `describe`, which names each to the table of keys (config/keys/section.hpp
// is what it is called with).
#pragma once

namespace echelon::inline config {

// Of a strategy without keys of its own.
struct NoKeys {
  template <class Section>
  static void describe(Section&) {}
};

}  // namespace echelon::inline config
