// SPDX-License-Identifier: Apache-2.0
#include "data/vocabulary.hpp"

#include <fmt/format.h>

#include "base/check.hpp"
#include "base/error.hpp"
#include "data/text_list.hpp"

namespace echelon::inline data {

Vocabulary::Vocabulary(std::vector<std::string> entries) : entries_(std::move(entries)) {
  for (std::size_t i = 0; i < entries_.size(); ++i) ids_.emplace(entries_[i], static_cast<std::int32_t>(i));
  ECHELON_CHECK_EQ(ids_.size(), entries_.size(), "a token occurs twice in the vocabulary");
}

std::int32_t Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

std::int32_t Vocabulary::id(std::string_view token) const {
  const std::int32_t found = find(token);
  return found >= 0 ? found : find(kUnknownToken);
}

void Vocabulary::write(h5::Writer& writer, std::string_view dataset) const {
  write_text_list(writer, dataset, entries_);
}

Vocabulary Vocabulary::read(const h5::Reader& reader, std::string_view dataset) {
  std::vector<std::string> entries = read_text_list(reader, dataset);
  std::unordered_map<std::string_view, std::size_t> seen;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (const auto [before, fresh] = seen.emplace(entries[i], i); !fresh)
      throw DataError(fmt::format("{}: dataset '{}' holds '{}' twice, as tokens {} and {}", reader.path(), dataset,
                                  token_text(entries[i]), before->second, i));
  return Vocabulary(std::move(entries));
}

std::string token_text(std::string_view token) {
  if (token == "\n") return "\\n";
  if (token == "\t") return "\\t";
  const bool lone_byte = token.size() == 1 && (token[0] < ' ' || token[0] == '\x7f');
  return lone_byte ? fmt::format("\\x{:02x}", static_cast<unsigned char>(token[0])) : std::string(token);
}

}  // namespace echelon::inline data
