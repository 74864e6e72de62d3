// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/config_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "config/keys.hpp"
#include "tests/fuzz/mutate.hpp"

namespace echelon::fuzz {
namespace {

std::ptrdiff_t at(std::size_t i) { return static_cast<std::ptrdiff_t>(i); }

// Values that are TOML, and some that are almost.
const std::array<std::string, 40> kOdd = {"",
                                          "true",
                                          "false",
                                          "[]",
                                          "[[]]",
                                          "{}",
                                          "{a = 1}",
                                          "[1, \"a\"]",
                                          "\"\"",
                                          "''",
                                          "\"\\u0000\"",
                                          "\"\\uD800\"",
                                          "\"\\n\"",
                                          "\"é\"",
                                          "\"\xff\"",
                                          "\"\"\"\na\nb\"\"\"",
                                          "1979-05-27",
                                          "07:32:00",
                                          "1979-05-27T07:32:00Z",
                                          "0x7fffffffffffffff",
                                          "0o17",
                                          "0b1",
                                          "1__0",
                                          "+1",
                                          "-0.0",
                                          "1e400",
                                          "inf",
                                          "nan",
                                          "\"a",
                                          "[1,",
                                          "{a = ",
                                          "= 1",
                                          "[a.b]",
                                          "a.b.c = 1",
                                          "[\"é\"]",
                                          "[[a]]",
                                          "# x",
                                          "\\",
                                          "\xef\xbb\xbf",
                                          "\r"};

template <class T>
void add_values(const T& usual, const KeyLimits& limits, std::vector<KeyValue>& valid, std::vector<KeyValue>& invalid) {
  valid.push_back(usual);
  if constexpr (std::is_same_v<T, bool>) {
    valid.insert(valid.end(), {true, false});
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    const bool bounded = limits.low < limits.high && limits.high <= 9e15;
    const auto low = static_cast<std::int64_t>(limits.low), high = static_cast<std::int64_t>(limits.high);
    for (const std::int64_t value : {1, 2, 3, 4, 8, 16})
      if (!bounded || (value >= low && value <= high)) valid.push_back(std::int64_t{value});
    if (bounded) valid.insert(valid.end(), {low, high}), invalid.insert(invalid.end(), {low - 1, high + 1});
  } else if constexpr (std::is_same_v<T, double>) {
    const bool bounded = limits.low < limits.high;
    for (const double value : {0.0, 0.1, 0.5, 1.0, 3.0})
      if (!bounded || (value >= limits.low && value <= limits.high)) valid.push_back(value);
    if (bounded) valid.insert(valid.end(), {limits.low, limits.high, (limits.low + limits.high) / 2});
    if (bounded && std::isfinite(limits.high)) invalid.push_back(std::nextafter(limits.high, 2 * limits.high + 1));
  } else if constexpr (std::is_same_v<T, std::string>) {
    for (const std::string& word : limits.words) valid.push_back(word);
    if (limits.words.empty()) valid.insert(valid.end(), {std::string("a"), std::string("data/x"), std::string("b-1")});
    invalid.insert(invalid.end(), {std::string("no such word"), std::string()});
  } else {
    T list = usual;
    for (const int count : {0, 1, 2, 3}) {
      list.clear();
      for (int i = 0; i < count; ++i) {
        if constexpr (std::is_same_v<T, std::vector<std::string>>)
          list.push_back(limits.words.empty() ? std::string(1, static_cast<char>('a' + i))
                                              : limits.words[static_cast<std::size_t>(i) % limits.words.size()]);
        else
          list.push_back(static_cast<typename T::value_type>(1 + i));
      }
      valid.push_back(list);
    }
  }
}

template <class Key>
auto known(const Key& key, const KeyValue& usual) {
  std::vector<KeyValue> good, bad;
  std::visit([&](const auto& value) { add_values(value, key.limits, good, bad); }, usual);
  std::pair<std::vector<std::string>, std::vector<std::string>> texts;
  for (const KeyValue& value : good) texts.first.push_back(value_toml(value));
  for (const KeyValue& value : bad) texts.second.push_back(value_toml(value));
  texts.second.insert(texts.second.end(), kOdd.begin(), kOdd.end());
  return texts;
}

bool is_heading(const std::string& line) { return line.starts_with("["); }

// Returns the line after the heading of a section, which is added where it is missing.
std::size_t section_begin(std::vector<std::string>& lines, const std::string& section) {
  if (section.empty()) return 0;
  const std::string heading = "[" + section + "]";
  const auto found = std::find(lines.begin(), lines.end(), heading);
  if (found != lines.end()) return static_cast<std::size_t>(found - lines.begin()) + 1;
  lines.push_back(heading);
  return lines.size();
}

// Sets a key between `begin` and the next heading.
void put(std::vector<std::string>& lines, std::size_t begin, const std::string& name, const std::string& value) {
  std::size_t end = begin;
  for (; end < lines.size() && !is_heading(lines[end]); ++end)
    if (lines[end].starts_with(name + " =")) {
      lines[end] = name + " = " + value;
      return;
    }
  lines.insert(lines.begin() + at(begin), name + " = " + value);
}

}  // namespace

ConfigText::ConfigText(std::vector<std::string> corpus) : corpus_(std::move(corpus)) {
  const Config usual;
  for (const auto& key : config_keys()) {
    auto [valid, invalid] = known(key, key.get(usual));
    keys_.push_back({key.section, key.name, std::move(valid), std::move(invalid)});
    words_.insert(words_.end(), {key.name, "[" + key.section + "]\n"});
    words_.insert(words_.end(), key.limits.words.begin(), key.limits.words.end());
  }
  const LayerConfig layer;
  for (const auto& key : layer_keys()) {
    auto [valid, invalid] = known(key, key.get(layer));
    layer_keys_.push_back({"model.layers", key.name, std::move(valid), std::move(invalid)});
    words_.push_back(key.name);
  }
  words_.insert(words_.end(), kOdd.begin(), kOdd.end());
  words_.emplace_back("[[model.layers]]\n");
  std::erase(words_, "");
}

const std::string& ConfigText::value_of(const KnownKey& key, bool valid, Draws& draws) const {
  return draws.one_of(valid || key.invalid.empty() ? key.valid : key.invalid);
}

void ConfigText::set_key(std::vector<std::string>& lines, bool valid, Draws& draws) const {
  const KnownKey& key = draws.one_of(keys_);
  put(lines, section_begin(lines, key.section), key.name, value_of(key, valid || draws.chance(0.7), draws));
}

void ConfigText::set_layer_key(std::vector<std::string>& lines, bool valid, Draws& draws) const {
  std::vector<std::size_t> layers;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i] == "[[model.layers]]") layers.push_back(i + 1);
  if (layers.empty()) return;
  const KnownKey& key = draws.one_of(layer_keys_);
  put(lines, draws.one_of(layers), key.name, value_of(key, valid || draws.chance(0.7), draws));
}

std::string ConfigText::draw(Draws& draws) const {
  std::vector<std::string> lines = lines_of(draws.one_of(corpus_));
  const bool valid = draws.chance(0.5);
  for (std::size_t changes = draws.below(valid ? 3 : 6); changes > 0; --changes)
    draws.chance(0.15) ? set_layer_key(lines, valid, draws) : set_key(lines, valid, draws);
  if (valid && draws.chance(0.3) && !lines.empty()) lines.erase(lines.begin() + at(draws.below(lines.size())));
  std::string text = joined_lines(lines);
  return valid || draws.chance(0.4) ? text : mutate_text(text, corpus_, words_, draws);
}

std::string ConfigText::draw_setting(Draws& draws) const {
  const KnownKey& key = draws.one_of(keys_);
  std::string value = value_of(key, draws.chance(0.8), draws);
  if (draws.chance(0.1)) value.clear();
  std::string setting = key.section.empty() ? key.name : key.section + "." + key.name;
  if (draws.chance(0.3)) setting = environment_name(key.section, key.name);
  setting += "=" + value;
  return draws.chance(0.2) ? mutate_text(setting, {}, words_, draws) : setting;
}

}  // namespace echelon::fuzz
