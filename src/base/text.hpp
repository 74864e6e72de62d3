// Words for people: units and tables that line up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline base {

std::string bytes_text(double bytes);        // "1.50 MiB"
std::string count_text(std::int64_t count);  // "1,797"
// "1 rank", "1,500 samples", "2 batches": the noun takes an s, or es, where there is not exactly one.
std::string counted(std::int64_t count, std::string_view noun);
std::string numbers_text(const std::vector<double>& values);  // "0.286, 0.353"
std::string short_count(double count);                        // "1.66 M"
std::string seconds_text(double seconds);                     // "1.23 ms", "45.6 s", "2 h 03 min"

// A table of text, one header row. Columns whose cells below the header all begin like a number are set to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  std::string text() const;      // columns apart by two spaces, a rule under the header
  std::string markdown() const;  // GitHub's pipes
  std::string csv() const;       // RFC 4180

 private:
  std::vector<std::size_t> widths() const;
  std::vector<bool> right_set() const;

  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace echelon::inline base
