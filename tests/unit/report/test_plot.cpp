// SPDX-License-Identifier: Apache-2.0
// Plots: every plot is an SVG of its data, in the page's colours.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "report/writers/plot.hpp"

namespace echelon {
namespace {

using Catch::Contains;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Returns the number after the n-th occurrence of `part`.
double number_behind(const std::string& text, const std::string& part, std::size_t n) {
  std::size_t at = text.find(part);
  for (; n > 0; --n) at = text.find(part, at + 1);
  return std::stod(text.substr(at + part.size()));
}

}  // namespace

TEST_CASE("curves are drawn where their values stand, and tell them", "[report][study]") {
  LinePlot plot{.title = "speed <of> ranks & co", .x_label = "ranks", .y_label = "speed-up", .lines = {}};
  CHECK(curves_svg(plot).empty());
  CHECK(svg_file(plot).empty());
  plot.lines = {{"ring", {{1, 1, 1, 1}, {2, 1.5, 1.4, 1.6}, {4, 2, 2, 2}}},
                {"<b>tree</b>", {{1, 1, 1, 1}, {4, 1, 1, 1}, {8, std::nan(""), 0, 0}}, 5, true}};
  for (const bool log2 : {false, true})
    for (const bool diagonal : {false, true}) {
      plot.log2_x = plot.log2_y = log2, plot.diagonal = diagonal;
      const std::string svg = curves_svg(plot);
      CAPTURE(log2, diagonal);
      CHECK_THAT(svg, Catch::StartsWith("<svg") && Catch::EndsWith("</svg>") && Contains("currentColor"));
      CHECK_THAT(svg, Contains("<title>ring: speed-up 1.5 at 2 ranks (1.4 to 1.6)</title>"));
      CHECK_THAT(svg, Contains("&lt;b&gt;tree") && !Contains("<b>") && !Contains("black"));
      CHECK(count_of(svg, "<circle") == 5);               // an unknown value is not drawn
      CHECK(count_of(svg, "fill-opacity=\".16\"") == 1);  // the band of the line that has one
      CHECK((svg.find("ideal") != std::string::npos) == diagonal);
      // 1, 2 and 4 are equally far apart on a logarithmic axis.
      const double first = number_behind(svg, "cx=\"", 0), second = number_behind(svg, "cx=\"", 1),
                   third = number_behind(svg, "cx=\"", 2);
      CHECK((third - second) / (second - first) == Approx(log2 ? 1 : 2).epsilon(0.01));  // positions have one decimal
      CHECK(number_behind(svg, "cy=\"", 0) > number_behind(svg, "cy=\"", 2));
    }
  const std::string file = svg_file(plot);
  CHECK_THAT(file, Contains("speed &lt;of&gt; ranks &amp; co") && Contains("prefers-color-scheme: dark"));
  CHECK_THAT(file, Contains(">ring</text>") && Contains(">&lt;b&gt;tree&lt;/b&gt;</text>"));  // the legend
  plot.lines = {{"one point", {{3, 5, 5, 5}}}};
  CHECK_THAT(curves_svg(plot), Contains("<circle") && !Contains("nan") && !Contains("inf"));
}

}  // namespace echelon
