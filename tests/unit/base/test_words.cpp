// SPDX-License-Identifier: Apache-2.0
// Names, numbers and tables as text for readers.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"

using namespace echelon;

TEST_CASE("edit distance counts a transposition once", "[nearest]") {
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "abc") == 0);
  CHECK(edit_distance("cnov", "conv") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("abc", "cab") == edit_distance("cab", "abc"));
}

TEST_CASE("the nearest name is near or none", "[nearest]") {
  const std::vector<std::string> known = {"learning_rate", "momentum", "ring", "naive"};
  CHECK(nearest_name("learning_rat", known) == "learning_rate");
  CHECK(nearest_name("learningrate", known) == "learning_rate");
  CHECK(nearest_name("rnig", known) == "ring");
  CHECK(nearest_name("weights", known).empty());
  CHECK(nearest_name("x", {}).empty());
}

TEST_CASE("an unknown name is answered with the nearest and all known ones", "[nearest]") {
  const std::vector<std::string> known = {"conv", "dense"};
  CHECK(unknown_name("layer", "cnov", known) == "unknown layer 'cnov' (did you mean 'conv'?); known: conv, dense");
  CHECK(unknown_name("layer", "transformer", known) == "unknown layer 'transformer'; known: conv, dense");
}

TEST_CASE("numbers with units", "[text]") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1536) == "1.50 KiB");
  CHECK(bytes_text(-1536) == "-1.50 KiB");
  CHECK(bytes_text(3.0 * 1024 * 1024 * 1024) == "3.00 GiB");
  CHECK(count_text(0) == "0");
  CHECK(count_text(999) == "999");
  CHECK(count_text(1797) == "1,797");
  CHECK(count_text(-1234567) == "-1,234,567");
  CHECK(short_count(999) == "999");
  CHECK(short_count(1.66e6) == "1.66 M");
  CHECK(seconds_text(1.5e-6) == "1.5 us");
  CHECK(seconds_text(0.00123) == "1.23 ms");
  CHECK(seconds_text(45.6) == "45.6 s");
  CHECK(seconds_text(600) == "10 min");
  CHECK(seconds_text(2 * 3600 + 180) == "2 h 03 min");
}

TEST_CASE("a table lines up and sets numbers to the right", "[text]") {
  Table table({"ranks", "rate"});
  CHECK(table.empty());
  table.row({"1", "9.5"});
  table.row({"16", "123.0"});
  CHECK(table.text() ==
        "ranks   rate\n"
        "------------\n"
        "    1    9.5\n"
        "   16  123.0\n");
  CHECK(table.markdown() ==
        "| ranks |  rate |\n"
        "|------:|------:|\n"
        "|     1 |   9.5 |\n"
        "|    16 | 123.0 |\n");
  CHECK_THROWS_AS(table.row({"only one"}), Error);
  table.row({"a|b", "1.0"});
  CHECK_THAT(table.markdown(), Catch::Contains("| a\\|b  |   1.0 |\n") && Catch::Contains("| 16    | 123.0 |\n"));
}

TEST_CASE("a table's words stay left, whatever their alphabet", "[text]") {
  Table table({"name", "n"});
  table.row({"größe", "-"});
  table.row({"a", "2"});
  CHECK(table.text() == "name   n\n--------\ngröße  -\na      2\n");
}

TEST_CASE("CSV quotes what needs it", "[text]") {
  Table table({"a", "b"});
  table.row({"x,y", "say \"hi\""});
  table.row({"plain", ""});
  CHECK(table.csv() == "a,b\n\"x,y\",\"say \"\"hi\"\"\"\nplain,\n");
}
