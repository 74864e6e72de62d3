// SPDX-License-Identifier: Apache-2.0
#include "report/writers/heat_map.hpp"

#include <catch2/catch.hpp>
#include <cmath>

namespace echelon {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a heat map draws known cells, crosses blocked ones out and leaves others blank", "[report]") {
  const std::string svg =
      heat_map_svg({"a < b", "from", "to", {"x", "y"}, {NAN, 1e6, 0, NAN}, {"", "1 MB/s", "blocked", ""}});
  CHECK(count_of(svg, "<rect ") == 1);
  CHECK(count_of(svg, "<path ") == 1);
  CHECK(count_of(svg, "a &lt; b") == 1);
  CHECK(count_of(svg, "x to y: 1 MB/s") == 1);
  CHECK(count_of(svg, "nan") == 0);
}

TEST_CASE("a large heat map has no text in its cells; the least value is the darkest", "[report]") {
  HeatMap map{"large", "from", "to", {}, {}, {}};
  for (int i = 0; i < 20; ++i) map.labels.push_back(std::to_string(i));
  for (int i = 0; i < 400; ++i) map.values.push_back(i + 1), map.texts.push_back("t" + std::to_string(i));
  const std::string svg = heat_map_svg(map);
  CHECK(count_of(svg, "<rect ") == 400);
  CHECK(count_of(svg, "text-anchor=\"middle\"") == 1);  // the heading
  CHECK(svg.find("fill=\"#08306b\"><title>0 to 0: t0<") != std::string::npos);
  CHECK(svg.find("fill=\"#deebf7\"><title>19 to 19: t399<") != std::string::npos);
  CHECK(svg.find("dark: t0, light: t399") != std::string::npos);
}

}  // namespace echelon
