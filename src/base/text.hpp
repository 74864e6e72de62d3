// SPDX-License-Identifier: Apache-2.0
// Formats numbers with units, and aligned tables, for logs, reports and error messages. No function throws.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline base {

std::string bytes_text(double bytes);        // "1.50 MiB": powers of 1024, B to PiB
std::string count_text(std::int64_t count);  // "1,797"
std::string rate_text(double rate);          // "1,797", "17.9", "1.79"; "-" for NaN
// "1 rank", "1,500 samples", "2 batches": adds s to the noun (es after tch) unless the count is 1.
std::string counted(std::int64_t count, std::string_view noun);
std::string numbers_text(const std::vector<double>& values);  // "0.286, 0.353": four significant digits
std::string short_count(double count);                        // "1.66 M": powers of 1000
std::string replaced(std::string text, const std::string& from, const std::string& to);  // replaces every `from`
std::string seconds_text(double seconds);  // "1.23 ms", "45.6 s", from 120 s on "63 min", "2 h 03 min"

// A text table with one header row. A column is right-aligned if every cell below the header begins like a number (sign
// or "~", then a digit) or is empty or "-". Widths count UTF-8 characters, not bytes. Cells may hold any text: each
// output format escapes it by its own rules (escape.hpp).
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void row(std::vector<std::string> cells);  // fails a check unless there is one cell per heading
  bool empty() const { return rows_.empty(); }
  const std::vector<std::string>& header() const { return header_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }
  std::vector<bool> right_set() const;  // [column] whether it is right-aligned

  // Formats the table for a terminal: columns two spaces apart, and a rule of hyphens under the header. If that is
  // wider than `columns`, headings and long cells are folded. If that is not enough, the columns follow in blocks; each
  // begins with the first columns, as many as are needed to tell rows apart.
  std::string text(std::size_t columns = 120) const;
  std::string markdown() const;  // GitHub pipe table
  std::string csv() const;       // RFC 4180 quoting; lines end with \n only

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

// Wraps the text to lines of at most `columns` characters; `first` begins the first line, `rest` the others.
std::string folded_text(const std::string& text, std::size_t columns, const std::string& first = "",
                        const std::string& rest = "");

}  // namespace echelon::inline base
