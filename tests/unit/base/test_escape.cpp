// SPDX-License-Identifier: Apache-2.0
// Text from outside is escaped in all formats that the program writes.
#include <catch2/catch.hpp>

#include "base/escape.hpp"
#include "base/text.hpp"

namespace echelon {

using Catch::Contains;

TEST_CASE("markup shows text and runs none of it", "[text]") {
  CHECK(escaped_for_markup("<script>\"a\" & b</script>") == "&lt;script&gt;&quot;a&quot; &amp; b&lt;/script&gt;");
  CHECK(escaped_for_markup("größe\n2\x1b") == "größe 2?");
  CHECK(escaped_for_markup("\xff\xc0\x80|\xed\xa0\x80|\xf5") == "???|???|?");  // not UTF-8, which XML refuses
}

TEST_CASE("Markdown shows text as it is", "[text]") {
  CHECK(escaped_for_markdown("<script>x</script>") == "&lt;script>x&lt;/script>");
  CHECK(escaped_for_markdown("a|b *c* `d` [e](f) $g$ \\") == "a\\|b \\*c\\* \\`d\\` \\[e\\](f) \\$g\\$ \\\\");
  CHECK(escaped_for_markdown("&lt; a & b") == "&amp;lt; a & b");
  CHECK(escaped_for_markdown("test_accuracy _x_ ~~y~~ ~2") == "test_accuracy \\_x\\_ \\~\\~y\\~\\~ ~2");
  CHECK(escaped_for_markdown("two\nlines") == "two lines");
  for (const char* plain : {"-", "-0.5", "+3.1 %", "2.5 s", "1.5", "ring, H = 10"})
    CHECK(escaped_for_markdown(plain) == plain);
  CHECK(escaped_for_markdown("# no heading") == "\\# no heading");
  CHECK(escaped_for_markdown("- no item") == "\\- no item");
  CHECK(escaped_for_markdown("2. no item") == "2\\. no item");
  CHECK(escaped_for_markdown("> no quotation") == "\\> no quotation");
  CHECK(escaped_for_markdown("`steps.p50`") == "`steps.p50`");
  CHECK(escaped_for_markdown("`<b>`") == "\\`&lt;b>\\`");
}

TEST_CASE("no text moves a terminal's cursor", "[text]") {
  CHECK(escaped_for_terminal("a\x1b[31mb\rc\x07\n\td\x7f") == "a?[31mb?c?\n\td?");
  CHECK(escaped_for_terminal("\xc2\x9b"
                             "2J größe \x9b") == "?2J größe ?");  // C1 characters, as UTF-8 and as a byte
}

TEST_CASE("a table escapes its cells in each of its forms", "[text]") {
  Table table({"what", "n"});
  table.row({"<b>|*x*\x1b[2J\nend", "1"});
  CHECK_THAT(table.text(), Contains("<b>|*x*?[2J end  1\n"));
  CHECK_THAT(table.markdown(), Contains("| &lt;b>\\|\\*x\\*?\\[2J end | 1 |\n"));
  CHECK_THAT(table.csv(), Contains("\"<b>|*x*\x1b[2J\nend\",1\n"));
}

}  // namespace echelon
