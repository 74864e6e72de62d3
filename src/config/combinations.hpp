// SPDX-License-Identifier: Apache-2.0
// The table of choices that exclude each other, with the reasons. Refusals, keys that give way and the matrix of
// `echelon check --combinations` are all derived from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/choices.hpp"

namespace echelon::inline config {

enum class Verdict : std::uint8_t {
  refused,    // ConfigError
  not_read,   // the blamed key would have no effect: an error if the key was given (unfit.hpp)
  gives_way,  // the blamed key is impossible: an error if it was given, else set to another value (settle_defaults)
};

// A choice with property `one` excludes a choice with property `other`; the error is reported at the key of `other`.
struct Exclusion {
  Property one, other;
  std::string_view reason;  // a clause that follows "<other> does not go with <one>: "
  Verdict verdict = Verdict::refused;
  std::string_view cure = {};           // advice on what to write instead; default: values of the blamed key that fit
  std::optional<Property> unless = {};  // has no effect if any choice of the config has this property
};

// A choice with property `one` requires that the chosen word of the key `path` has the property `needed`.
struct Requirement {
  Property one;
  std::string_view path;
  Property needed;
  std::string_view reason;  // a clause that follows "<word> does not go with <one>: "
  bool blames_one = false;  // the error is reported at the key of `one`, else at `path`
};

const std::vector<Exclusion>& exclusions();
const std::vector<Requirement>& requirements();

// Two choices that exclude each other.
struct Clash {
  const Choice* one = nullptr;
  const Choice* blamed = nullptr;
  std::string_view reason;
  Verdict verdict = Verdict::refused;
  std::string_view cure;  // "": derived by cure_of
};

// Returns the clash of two choices, in either order; none if they can be combined.
std::optional<Clash> clash_between(const Choice& a, const Choice& b);
// Returns the clashes among all that the config chose, in the order of the tables.
std::vector<Clash> clashes(const Config& config);
// Returns the second half of the error message, the advice: words of the blamed key that fit the rest of the config, or
// to leave the key out. "" if nothing fits.
std::string cure_of(const Clash& clash, const Config& config);

// Throws ConfigError for the first clash whose verdict is `refused`, with the place of the key that was given.
void refuse_clashes(const Config& config);

// The matrix of all choices as text, with the reasons behind its letters: `echelon check --combinations`.
std::string combinations_text();

}  // namespace echelon::inline config
