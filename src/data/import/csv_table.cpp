// SPDX-License-Identifier: Apache-2.0
#include "data/import/csv_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "data/import/numbers.hpp"

namespace echelon::inline data {
namespace {

constexpr std::size_t kMostLine = 64 << 20;

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

bool is_missing_word(std::string_view cell) {
  static constexpr std::array kMissing = {"na", "n/a", "#n/a", "null", "none", "?"};
  return std::any_of(kMissing.begin(), kMissing.end(), [&](const char* word) { return same_word(cell, word); });
}

// Whether a cell can stand for a number, also infinite, out of range or missing. Then it is not a column's name.
bool stands_for_number(std::string_view cell) { return reads_as_number(cell) || is_missing_word(cell); }

bool names_columns(const std::vector<std::string_view>& cells, std::int64_t first_value) {
  bool text = false;
  for (std::size_t c = static_cast<std::size_t>(first_value); c < cells.size(); ++c) {
    if (stands_for_number(cells[c])) return false;
    text = text || !cells[c].empty();
  }
  return text;
}

// Returns a comma if the first line has one, else the separator that divides it into the most cells: "a;b;class",
// "a\tb\tclass".
char separator_of(std::string_view line) {
  char best = ',';
  if (line.find(',') != std::string_view::npos) return best;
  for (const char other : {';', '\t'})
    if (std::count(line.begin(), line.end(), other) > std::count(line.begin(), line.end(), best)) best = other;
  return best;
}

}  // namespace

bool is_missing(std::string_view cell) { return cell.empty() || same_word(cell, "nan") || is_missing_word(cell); }

Heading heading_of(const std::string& name) {
  const std::vector<std::string> known{"auto", "yes", "no"};
  const auto found = std::find(known.begin(), known.end(), name);
  if (found == known.end()) throw ConfigError(unknown_name("--heading", name, known));
  return static_cast<Heading>(found - known.begin());
}

CsvTable::CsvTable(const std::string& path, Heading heading, std::int64_t first_value) : stream_(path), mode_(heading) {
  std::vector<std::string_view> cells;
  if (next_line(text_)) {
    if (text_.starts_with("\xff\xfe") || text_.starts_with("\xfe\xff"))
      throw DataError(fmt::format("{}: is UTF-16, tables are read as UTF-8: iconv -f utf-16 -t utf-8", path));
    separator_ = separator_of(text_);
    line_ = 1;
    if (mode_ == Heading::automatic) split(cells);
    if (mode_ == Heading::present || (mode_ == Heading::automatic && names_columns(cells, first_value))) {
      stream_.rewind();  // reads the line again as in the file: splitting has joined doubled quotes
      line_ = 0;
      next_line(heading_);
    }
  }
  rewind();
}

void CsvTable::rewind() {
  stream_.rewind();
  line_ = 0;
  if (heading_.empty()) return;
  next_line(text_);
  line_ = 1;
}

bool CsvTable::next_line(std::string& text) {
  if (!stream_.line(text, nullptr, kMostLine)) return false;
  if (text.size() < kMostLine) return true;
  throw DataError(fmt::format("{}: line {} has more than {} bytes; is this a table with a row a line?", path(),
                              line_ + 1, kMostLine));
}

bool CsvTable::next(std::vector<std::string_view>& cells) {
  while (next_line(text_)) {
    ++line_;
    if (trimmed(text_).empty()) continue;
    split(cells);
    return true;
  }
  return false;
}

void CsvTable::split(std::vector<std::string_view>& cells) {
  cells.clear();
  const auto expected = static_cast<std::size_t>(std::count(text_.begin(), text_.end(), separator_)) + 1;
  if (expected > cells.capacity()) cells.reserve(expected);  // avoids reallocations for rows with many columns
  if (text_.find('"') == std::string::npos) {
    for_cells(text_, separator_, [&](std::int64_t, std::string_view cell) { cells.push_back(cell); });
    return;
  }
  for (std::size_t from = 0;;) {
    const std::size_t begin = std::min(text_.find_first_not_of(blanks(), from), text_.size());
    if (begin < text_.size() && text_[begin] == '"') {
      from = begin + 1;
      quoted_cell(from, cells);
    } else {
      const std::size_t end = std::min(text_.find(separator_, from), text_.size());
      cells.push_back(trimmed(std::string_view(text_).substr(from, end - from)));
      from = end;
    }
    if (from == text_.size()) return;
    ++from;  // skips the separator
  }
}

// `from`: on entry after the opening quote, on return at the separator or the end. Unescapes doubled quotes in place.
void CsvTable::quoted_cell(std::size_t& from, std::vector<std::string_view>& cells) {
  const auto fail = [&](const char* what) {
    throw DataError(fmt::format("{}: line {}, column {}: {}", path(), line_, cells.size() + 1, what));
  };
  const std::size_t begin = from;
  std::size_t to = from;
  for (;; ++from) {
    if (from == text_.size()) fail("a quoted cell is not closed on its line");
    if (text_[from] == '"') {
      if (from + 1 == text_.size() || text_[from + 1] != '"') break;
      ++from;
    }
    text_[to++] = text_[from];
  }
  from = std::min(text_.find_first_not_of(blanks(), from + 1), text_.size());
  if (from < text_.size() && text_[from] != separator_)
    fail("text follows a quoted cell; a quote inside one is doubled");
  cells.push_back(trimmed(std::string_view(text_).substr(begin, to - begin)));
}

}  // namespace echelon::inline data
