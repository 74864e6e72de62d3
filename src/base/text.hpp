// Numbers with units, and aligned tables, for logs, reports and error messages. No function here throws.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline base {

std::string bytes_text(double bytes);        // "1.50 MiB": units of 1024, B to PiB
std::string count_text(std::int64_t count);  // "1,797"
std::string rate_text(double rate);          // "1,797", "17.9", "1.79"; "-" of NaN
// "1 rank", "1,500 samples", "2 batches": the noun gets an s (es after tch) unless the count is 1.
std::string counted(std::int64_t count, std::string_view noun);
std::string numbers_text(const std::vector<double>& values);  // "0.286, 0.353": four significant digits
std::string short_count(double count);                        // "1.66 M": units of 1000
std::string replaced(std::string text, const std::string& from, const std::string& to);  // every `from` by `to`
std::string seconds_text(double seconds);  // "1.23 ms", "45.6 s", from 120 s on "63 min", "2 h 03 min"

// A table of text with one header row. A column is right-aligned where every cell below the header begins like a number
// (sign or "~", then a digit) or is empty or "-". Widths count UTF-8 characters, not bytes. Cells may hold any text:
// each form escapes it by its own rules (escape.hpp).
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void row(std::vector<std::string> cells);  // a failed check unless there are as many cells as headings
  bool empty() const { return rows_.empty(); }
  const std::vector<std::string>& header() const { return header_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }
  std::vector<bool> right_set() const;  // by column: whether it is right-aligned

  // For a terminal: columns two spaces apart, a rule of hyphens under the header. Where that is wider than `columns`,
  // headings and long cells are folded; where that does not do, the columns follow in blocks, each of which begins with
  // the first columns, as many as tell the rows apart.
  std::string text(std::size_t columns = 120) const;
  std::string markdown() const;  // pipe table of GitHub
  std::string csv() const;       // RFC 4180 quoting, lines end with \n alone

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

// Words of the text in lines of at most so many characters, the first after `first` and the others after `rest`.
std::string folded_text(const std::string& text, std::size_t columns, const std::string& first = "",
                        const std::string& rest = "");

}  // namespace echelon::inline base
