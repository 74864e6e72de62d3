// SPDX-License-Identifier: Apache-2.0
// Tables on a terminal of 120 columns: nothing may be cut off.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "base/text.hpp"

namespace echelon {
namespace {

using Catch::Contains;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  for (const std::string& line : lines_of(text)) most = std::max(most, line.size());
  return most;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Table wide_table(const std::string& name, std::size_t columns) {
  std::vector<std::string> header = {"what", "ranks"};
  for (std::size_t c = 0; c < columns; ++c) header.push_back(fmt::format("figure number {}", c));
  Table table(header);
  for (const int ranks : {1, 2}) {
    std::vector<std::string> row = {name, std::to_string(ranks)};
    for (std::size_t c = 0; c < columns; ++c) row.push_back(fmt::format("{}{:03}.25 (1,000 to 2,000)", ranks, c));
    table.row(row);
  }
  return table;
}

}  // namespace

TEST_CASE("a table that is too wide goes on in blocks that begin with what tells its rows apart", "[text]") {
  for (const std::size_t columns : {4U, 9U, 40U})
    for (const std::string& name :
         {std::string("ring"), std::string("ring over hosts with a name that is rather long"), std::string(200, 'x')}) {
      CAPTURE(columns, name);
      const std::string text = wide_table(name, columns).text();
      INFO(text);
      CHECK(widest(text) <= 120);
      for (const int ranks : {1, 2})
        for (std::size_t c = 0; c < columns; ++c) CHECK(count_of(text, fmt::format("{}{:03}.25", ranks, c)) == 1);
      CHECK(count_of(text, "ranks") == count_of(text, "what"));
      CHECK(count_of(text, "ranks") == count_of("\n" + text, "\n--"));  // one rule per block
    }
}

TEST_CASE("a table folds headings and long cells before it is divided", "[text]") {
  Table table({"figure of a kind that takes many words to say what it is, even more words than these", "n"});
  table.row({"12",
             "a cell with a sentence in it that goes on for much longer than the width of a terminal would allow it "
             "to, and so it is folded"});
  const std::string text = table.text();
  INFO(text);
  CHECK(widest(text) <= 120);
  CHECK(lines_of(text).size() > 3);
  CHECK(count_of(text, "---") > 0);
  CHECK(count_of("\n" + text, "\n---") == 1);  // one block
  CHECK(table.text(1000).find("to, and so it is folded\n") != std::string::npos);
}

TEST_CASE("text is folded between words, with what each line begins with", "[text]") {
  CHECK(folded_text("one two three four", 9) == "one two\nthree\nfour\n");
  CHECK(folded_text("one two three", 9, "* ", "  ") == "* one two\n  three\n");
  CHECK(folded_text("aaaaaaaaaaaa b", 5) == "aaaaa\naaaaa\naa b\n");
  CHECK(folded_text("größe größe", 5) == "größe\ngröße\n");
  CHECK(folded_text("", 5) == "\n");
  CHECK(folded_text("memory    1 MiB of weights", 18, "", "  ") == "memory    1 MiB\n  of weights\n");
}

}  // namespace echelon
