// Curves as SVG, by hand: axes and text in the colour of the page around them (currentColor), so that one figure is
// readable in light, dark and print. Each point tells its values where the pointer rests on it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace echelon::inline report {

constexpr std::size_t kPlotColours = 13;  // lines and parts beyond repeat the first ones

struct PlotPoint {
  double x = 0, y = 0, low = 0, high = 0;  // low = high = y: no band
};
struct PlotLine {
  std::string name;
  std::vector<PlotPoint> points;
  std::optional<std::size_t> colour = {};  // index of the palette, modulo kPlotColours; else the line's place
  bool dashed = false;
};
struct LinePlot {
  std::string title, x_label, y_label;
  std::vector<PlotLine> lines;
  bool log2_x = false;    // numbers of ranks: 1, 2, 4, ..
  bool log2_y = false;    // speed-ups
  bool diagonal = false;  // y = x, as "ideal"
};

// Distinguishable on white and on black, also without red or green.
const char* plot_colour(std::size_t index);
// The line's index in the palette.
std::size_t colour_of(const LinePlot& plot, std::size_t line);

// Axes, bands and lines; line i is the group with data-line="i". "" where there is nothing to draw.
std::string curves_svg(const LinePlot& plot);
// The same as a file of its own, with title and legend, for light and dark pages.
std::string svg_file(const LinePlot& plot);

}  // namespace echelon::inline report
