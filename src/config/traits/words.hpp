// SPDX-License-Identifier: Apache-2.0
// Short lists of names known at compile time, and lists of names from tables of traits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline config {

// Holds up to ten names; more do not compile in a constant expression.
class Words {
 public:
  constexpr Words() = default;
  constexpr Words(std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words) words_[size_++] = word;
  }
  constexpr const std::string_view* begin() const { return words_; }
  constexpr const std::string_view* end() const { return words_ + size_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr std::string_view operator[](std::size_t i) const { return words_[i]; }
  constexpr bool contains(std::string_view word) const { return std::find(begin(), end(), word) != end(); }

 private:
  std::string_view words_[10] = {};
  std::size_t size_ = 0;
};

// Returns the names in a table of traits, in its order, for which `holds` is true.
template <class Table, class Holds>
std::vector<std::string> names_where(const Table& table, const Holds& holds) {
  std::vector<std::string> names;
  for (const auto& entry : table)
    if (holds(entry)) names.emplace_back(entry.name);
  return names;
}
template <class Table>
std::vector<std::string> names_in(const Table& table) {
  return names_where(table, [](const auto&) { return true; });
}

// Returns the entry of this name; null if there is none.
template <class Table>
constexpr auto find_traits(const Table& table, std::string_view name) -> decltype(&*std::begin(table)) {
  for (const auto& entry : table)
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace echelon::inline config
