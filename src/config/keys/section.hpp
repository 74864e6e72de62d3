// SPDX-License-Identifier: Apache-2.0
// Helpers to describe keys in the files of this folder: one function per section, each key with its field, range and
// help text. The default of a key is that of its field in schema.hpp.
//
//   auto batch = part(all, "batch", &Config::batch);
//   batch.key("global", &BatchConfig::global, range(0, 1e9), "samples a step over all replicas");
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "config/keys.hpp"
#include "config/traits/words.hpp"

namespace echelon::inline config::keys {

using Table = std::vector<Key<Config>>;
using LayerTable = std::vector<Key<LayerConfig>>;

constexpr bool kNeutral = true;  // not in config_hash: a resumed run may change it

constexpr double kHuge = 9e15;  // whole numbers up to here are exact in a double

inline KeyLimits range(double low, double high) { return {.low = low, .high = high}; }
inline KeyLimits at_least(double low) { return range(low, kHuge); }
inline KeyLimits words(std::vector<std::string> list) { return {.low = 1, .high = 0, .words = std::move(list)}; }
inline KeyLimits words_or_empty(std::vector<std::string> list) {
  KeyLimits limits = words(std::move(list));
  limits.or_empty = true;
  return limits;
}
inline KeyLimits text() { return words({}); }
inline KeyLimits filled_text() { return {.low = 1, .high = 0, .filled = true}; }
inline KeyLimits plain_name() { return {.low = 1, .high = 0, .plain_name = true, .most = 64}; }
// One number for all spatial axes, or one for each of up to three.
inline KeyLimits per_axis(double low, double high) { return {.low = low, .high = high, .most = 3}; }

// Converts a field to a KeyValue and back. limits.words must be in the order of the enum.
template <class Field>
KeyValue to_value(const Field& field, const KeyLimits& limits) {
  if constexpr (std::is_enum_v<Field>)
    return limits.words[static_cast<std::size_t>(field)];
  else if constexpr (std::is_same_v<Field, std::uint64_t>)
    return static_cast<std::int64_t>(field);
  else
    return field;
}

template <class Field>
Field from_value(const KeyValue& value, const KeyLimits& limits) {
  if constexpr (std::is_enum_v<Field>) {
    const std::string& word = std::get<std::string>(value);
    std::size_t at = 0;
    while (at < limits.words.size() && limits.words[at] != word) ++at;
    ECHELON_CHECK_LT(at, limits.words.size(), "the word was checked before");
    return static_cast<Field>(at);
  } else if constexpr (std::is_same_v<Field, std::uint64_t>) {
    return static_cast<std::uint64_t>(std::get<std::int64_t>(value));
  } else {
    return std::get<Field>(value);
  }
}

// Adds the keys of one section to the table. `at` returns the section's struct inside the owner.
template <class Owner, class Part>
class Section {
 public:
  using At = std::function<Part&(Owner&)>;
  Section(std::vector<Key<Owner>>& table, std::string name, At at, bool neutral = false)
      : table_(table), name_(std::move(name)), at_(std::move(at)), neutral_(neutral) {}

  template <class Field>
  void key(const char* name, Field Part::*field, const KeyLimits& limits, const char* help,
           std::optional<bool> neutral = {}) {
    const At at = at_;
    table_.push_back(
        {name_, name, help, limits, neutral.value_or(neutral_), younger_,
         [=](const Owner& owner) { return to_value(at(const_cast<Owner&>(owner)).*field, limits); },
         [=](Owner& owner, const KeyValue& value) { at(owner).*field = from_value<Field>(value, limits); }});
  }

  // For the keys of a strategy, which are described without including this header (config/strategies/keys.hpp).
  template <class Field>
  void neutral_key(const char* name, Field Part::*field, const KeyLimits& limits, const char* help) {
    key(name, field, limits, help, true);
  }
  // The keys that follow are younger than runs that keep their hash.
  void younger() { younger_ = true; }
  static KeyLimits range(double low, double high) { return keys::range(low, high); }
  static KeyLimits words(std::vector<std::string> list) { return keys::words(std::move(list)); }

 private:
  std::vector<Key<Owner>>& table_;
  std::string name_;
  At at_;
  bool neutral_;
  bool younger_ = false;
};

template <class Part>
Section<Config, Part> part(Table& table, const char* name, Part Config::*member, bool neutral = false) {
  return {table, name, [=](Config& config) -> Part& { return config.*member; }, neutral};
}

// Each function adds the keys of its sections to the table; they are called in the order of the effective config.
void add_experiment(Table& all);  // the top of the file, model, data, batch, train
void add_augment(Table& all);     // data.augment
void add_hdf5(Table& all);        // data.hdf5
void add_optimiser(Table& all);
void add_parallel(Table& all);
void add_exchange(Table& all);  // and [exchange.<strategy>]
void add_run(Table& all);       // network, device, evaluate, checkpoint, goal, monitor, cost, run, fault
void add_layer(LayerTable& all);

}  // namespace echelon::inline config::keys
