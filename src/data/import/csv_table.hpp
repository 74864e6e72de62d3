// Tables of comma-separated values (RFC 4180): cells may be quoted, a quote inside one is doubled; a line is a row, so
// quoted cells end on their line. Blanks around cells, empty lines and a byte-order mark are left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/import/byte_stream.hpp"

namespace echelon::inline data {

// Whether the first line holds names of columns. `automatic`: where none of its value cells is a number, `nan` and
// `inf` and words for missing values included, and one of them has text.
enum class Heading : std::uint8_t { automatic, present, absent };
// "auto" | "yes" | "no"; ConfigError with the nearest.
Heading heading_of(const std::string& name);

class CsvTable {
 public:
  // Columns from `first_value` on hold numbers. Reads as far as the heading. Throws DataError.
  CsvTable(const std::string& path, Heading heading, std::int64_t first_value);

  const std::string& path() const { return stream_.path(); }
  std::int64_t line() const { return line_; }  // of the row read last, from 1
  // The first line as it stands in the file, where it was left out as a heading; else "".
  const std::string& heading() const { return heading_; }
  // The first line is data because of its numbers, not by --heading.
  bool guessed_data() const { return mode_ == Heading::automatic && heading_.empty(); }

  void rewind();  // to the first row after the heading
  // The next row: its cells, valid until the next call. False at the end. Throws DataError naming file and line.
  bool next(std::vector<std::string_view>& cells);

 private:
  void split(std::vector<std::string_view>& cells);
  void quoted_cell(std::size_t& from, std::vector<std::string_view>& cells);

  ByteStream stream_;
  Heading mode_;
  std::string heading_;
  std::int64_t line_ = 0;
  std::string text_;
};

}  // namespace echelon::inline data
