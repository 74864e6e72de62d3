// SPDX-License-Identifier: Apache-2.0
// Writes curves as SVG without a library. Axes and text use the colour of the page around them (currentColor), so that
// a figure is readable in light, dark and print. Each point shows its values when the pointer rests on it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace echelon::inline report {

constexpr std::size_t kPlotColours = 13;  // further lines and parts reuse the colours from the first

struct PlotPoint {
  double x = 0, y = 0, low = 0, high = 0;  // low = high = y: no band
};
struct PlotLine {
  std::string name;
  std::vector<PlotPoint> points;
  std::optional<std::size_t> colour = {};  // palette index, modulo kPlotColours; default: the line's position
  bool dashed = false;
};
struct LinePlot {
  std::string title, x_label, y_label;
  std::vector<PlotLine> lines;
  bool log2_x = false;    // numbers of ranks: 1, 2, 4, ..
  bool log2_y = false;    // speed-ups
  bool diagonal = false;  // y = x, as "ideal"
};

// Colours are distinguishable on white and on black, also without red or green.
const char* plot_colour(std::size_t index);
// Returns the line's index in the palette.
std::size_t colour_of(const LinePlot& plot, std::size_t line);

// Draws axes, bands and lines; line i is the group with data-line="i". Returns "" if there is nothing to draw.
std::string curves_svg(const LinePlot& plot);
// The same as a standalone file with title and legend, for light and dark pages.
std::string svg_file(const LinePlot& plot);

}  // namespace echelon::inline report
