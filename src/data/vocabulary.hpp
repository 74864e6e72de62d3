// The tokens of a set by number: characters, bytes or words, each as the text it stands for.
//
// In a file: dataset `vocabulary` (bytes), the entries in a row, each ended by a zero byte. (An attribute would hold
// 64 KiB at most.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "h5/file.hpp"

namespace echelon::inline data {

// Entries with a meaning of their own.
inline constexpr const char* kUnknownToken = "<unk>";  // words that are not in the vocabulary
inline constexpr const char* kStartToken = "<s>";      // what a decoder is fed first
inline constexpr const char* kEndToken = "</s>";       // what it is to say last

class Vocabulary {
 public:
  Vocabulary() = default;
  // Entries differ from each other and hold no zero byte.
  explicit Vocabulary(std::vector<std::string> entries);

  std::int64_t size() const { return static_cast<std::int64_t>(entries_.size()); }
  const std::vector<std::string>& entries() const { return entries_; }
  const std::string& operator[](std::int32_t id) const { return entries_[static_cast<std::size_t>(id)]; }
  // -1 where it is not in the vocabulary.
  std::int32_t find(std::string_view token) const;
  // As `find`, else <unk>; -1 where there is none.
  std::int32_t id(std::string_view token) const;

  void write(h5::Writer& writer, std::string_view dataset) const;
  // DataError where the last entry is not ended or two are the same.
  static Vocabulary read(const h5::Reader& reader, std::string_view dataset);

  friend bool operator==(const Vocabulary& a, const Vocabulary& b) { return a.entries_ == b.entries_; }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<std::string> entries_;
  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> ids_;
};

// An entry for people: "\n" as "\\n", a byte that is no text as "\\xe9".
std::string token_text(std::string_view token);

}  // namespace echelon::inline data
