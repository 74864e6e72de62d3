// SPDX-License-Identifier: Apache-2.0
// Tables of values (RFC 4180), separated by commas, or by semicolons or tabs if the first line has no comma. A line may
// have at most 64 MiB and takes up to 10 times its length in memory. Cells may be quoted, with quotes inside them
// doubled; a row is one line, so quoted cells end on their line. Blanks around cells, empty lines and a byte-order mark
// are skipped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/import/byte_stream.hpp"

namespace echelon::inline data {

// Whether the first line holds column names. `automatic`: it does if none of its value cells is a number (`nan`, `inf`
// and words for missing values count as numbers) and at least one has text.
enum class Heading : std::uint8_t { automatic, present, absent };
// "auto" | "yes" | "no"; throws ConfigError, with the nearest, for another name.
Heading heading_of(const std::string& name);

// Whether a cell stands for a missing value: empty, "nan", "NA", "?", ..
bool is_missing(std::string_view cell);

class CsvTable {
 public:
  // Opens the file and reads the heading. Columns from `first_value` on (from 0) hold numbers. Throws DataError.
  CsvTable(const std::string& path, Heading heading, std::int64_t first_value);

  const std::string& path() const { return stream_.path(); }
  std::int64_t line() const { return line_; }  // line number of the last row read, from 1
  // The first line as it is in the file if it is a heading; else "".
  const std::string& heading() const { return heading_; }
  // A word for messages: "commas", "semicolons", "tabs".
  const char* separator() const { return separator_ == ',' ? "commas" : separator_ == ';' ? "semicolons" : "tabs"; }
  // Whether `automatic` took the first line for data.
  bool guessed_data() const { return mode_ == Heading::automatic && heading_.empty(); }

  void rewind();  // to the first row after the heading
  // Reads the next row into `cells`, valid until the next call. Returns false at the end. Throws DataError with
  // file:line for an unterminated quoted cell.
  bool next(std::vector<std::string_view>& cells);

 private:
  bool next_line(std::string& text);
  const char* blanks() const { return separator_ == '\t' ? " " : " \t"; }
  void split(std::vector<std::string_view>& cells);
  void quoted_cell(std::size_t& from, std::vector<std::string_view>& cells);

  ByteStream stream_;
  Heading mode_;
  std::string heading_;
  char separator_ = ',';
  std::int64_t line_ = 0;
  std::string text_;
};

}  // namespace echelon::inline data
