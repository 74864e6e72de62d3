// SPDX-License-Identifier: Apache-2.0
// Maps the numbers of a data set's tokens to their texts: characters, bytes or words.
//
// In a file: dataset `vocabulary` (data/text_list.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "h5/file.hpp"

namespace echelon::inline data {

// Special entries.
inline constexpr const char* kUnknownToken = "<unk>";  // stands for words that are not in the vocabulary
inline constexpr const char* kStartToken = "<s>";      // the first input of a decoder
inline constexpr const char* kEndToken = "</s>";       // the last token of a target sequence

class Vocabulary {
 public:
  Vocabulary() = default;
  // `entries` by number; they must be distinct and contain no zero byte.
  explicit Vocabulary(std::vector<std::string> entries);

  std::int64_t size() const { return static_cast<std::int64_t>(entries_.size()); }
  const std::vector<std::string>& entries() const { return entries_; }
  const std::string& operator[](std::int32_t id) const { return entries_[static_cast<std::size_t>(id)]; }
  // Returns the number of a token; -1 if it is not in the vocabulary.
  std::int32_t find(std::string_view token) const;
  // Returns the number of a token, else that of <unk>; -1 if the vocabulary has neither.
  std::int32_t id(std::string_view token) const;

  void write(h5::Writer& writer, std::string_view dataset) const;
  // Throws DataError if the last entry has no zero byte or two entries are equal.
  static Vocabulary read(const h5::Reader& reader, std::string_view dataset);

  friend bool operator==(const Vocabulary& a, const Vocabulary& b) { return a.entries_ == b.entries_; }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<std::string> entries_;
  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> ids_;
};

// Returns a token as messages show it: "\n" as "\\n", a byte that is not text as "\\xe9".
std::string token_text(std::string_view token);

}  // namespace echelon::inline data
