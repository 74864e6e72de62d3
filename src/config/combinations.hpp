// Which choices do not go together, and why: one table, from which refusals, keys that give way and the matrix of
// `echelon check --combinations` all come.
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
  not_read,   // the blamed key would have no effect: refused where it is given (unfit.hpp)
  gives_way,  // the blamed key is impossible: refused where it is given, else set to another value (settle_defaults)
};

// A choice with property `one` beside a choice with property `other`; the error is reported at the key of `other`.
struct Exclusion {
  Property one, other;
  std::string_view reason;  // a clause that follows "<other> does not go with <one>: "
  Verdict verdict = Verdict::refused;
  std::string_view cure = {};           // what to write instead; default: the values of the blamed key that fit
  std::optional<Property> unless = {};  // without effect where any choice of the config has this property
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

// Two choices that do not go together.
struct Clash {
  const Choice* one = nullptr;
  const Choice* blamed = nullptr;
  std::string_view reason;
  Verdict verdict = Verdict::refused;
  std::string_view cure;  // "": derived by cure_of
};

// Of two choices, in either order; none where they go together.
std::optional<Clash> clash_between(const Choice& a, const Choice& b);
// Of all that the config chose, in the order of the tables.
std::vector<Clash> clashes(const Config& config);
// The second half of the error message, what to write instead: words of the blamed key that fit the rest of the config,
// or to leave the key out. "" where nothing fits.
std::string cure_of(const Clash& clash, const Config& config);

// ConfigError for the first clash whose verdict is `refused`, with the place of the key that was given.
void refuse_clashes(const Config& config);

// The matrix of all choices as text, with the reasons behind its letters: `echelon check --combinations`.
std::string combinations_text();

}  // namespace echelon::inline config
