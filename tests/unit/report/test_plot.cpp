// Figures: whatever is drawn is an SVG of its data, in the page's colours.
#include <algorithm>
#include <catch2/catch.hpp>

#include "report/writers/plot.hpp"
#include "tests/support/skip.hpp"

namespace echelon {

using Catch::Contains;

TEST_CASE("line and bar figures are drawn by gnuplot, in the colour of the page", "[report][study]") {
  if (test::skip_without(can_draw(), "needs gnuplot")) return;
  LinePlot lines{.title = "speed \"of\" ranks & co", .x_label = "ranks", .y_label = "x", .lines = {}};
  CHECK(draw_svg(lines).empty());
  lines.lines = {{"ring", {{1, 1, 1, 1}, {2, 1.5, 1.4, 1.6}, {4, 2, 2, 2}}}, {"tree_a", {{1, 1, 1, 1}}}};
  for (const bool log2 : {false, true})
    for (const bool diagonal : {false, true}) {
      lines.log2_x = log2, lines.diagonal = diagonal;
      const std::string svg = draw_svg(lines);
      CAPTURE(log2, diagonal);
      CHECK_THAT(svg, Catch::StartsWith("<svg") && Contains("ring") && Contains("tree_a") && Contains("currentColor"));
      CHECK_THAT(svg, !Contains("black"));
      CHECK((svg.find("ideal") != std::string::npos) == diagonal);
    }
  const StackPlot stack{
      .title = "budget", .bars = {"a, 1", "b, 2"}, .parts = {"one", "two"}, .values = {{60, 40}, {-5, 105}}};
  CHECK_THAT(draw_svg(stack), Catch::StartsWith("<svg") && Contains("a, 1") && Contains("two"));
}

}  // namespace echelon
