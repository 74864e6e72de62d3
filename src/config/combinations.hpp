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
  not_read,   // the blamed key would do nothing: refused where it is given
  gives_way,  // the blamed key cannot be; left at its default it takes another value (settle_defaults)
};

// A choice of `one` beside a choice of `other`, whose key is blamed.
struct Exclusion {
  Property one, other;
  std::string_view reason;  // goes on after "<other> does not go with <one>: "
  Verdict verdict = Verdict::refused;
  std::string_view cure = {};           // default: what of the blamed key's values fits
  std::optional<Property> unless = {};  // does not count beside a choice of this
};

// A choice of `one` wants a word of the key `path` that has `needed`.
struct Requirement {
  Property one;
  std::string_view path;
  Property needed;
  std::string_view reason;  // goes on after "<word> does not go with <one>: "
  bool blames_one = false;  // the key of `one`; else `path`
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
// What to write instead: words of the blamed key that fit the rest of the config, or to leave the key out.
std::string cure_of(const Clash& clash, const Config& config);

// ConfigError for the first that is `refused`.
void refuse_clashes(const Config& config);

// The matrix of all choices for people, with the reasons behind its letters.
std::string combinations_text();

}  // namespace echelon::inline config
