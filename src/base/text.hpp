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
// (sign or "~", then a digit) or is empty or "-". Widths count UTF-8 characters, not bytes.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void row(std::vector<std::string> cells);  // a failed check unless there are as many cells as headings
  bool empty() const { return rows_.empty(); }

  std::string text() const;      // columns two spaces apart, a rule of hyphens under the header
  std::string markdown() const;  // pipe table of GitHub; pipes inside cells are escaped
  std::string csv() const;       // RFC 4180 quoting, lines end with \n alone

 private:
  std::vector<std::size_t> widths() const;
  std::vector<bool> right_set() const;

  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace echelon::inline base
