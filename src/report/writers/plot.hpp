// Line and bar figures as SVG, drawn by gnuplot: no external file, text and axes in the colour of the page around them
// (currentColor), so that one figure is readable in light, dark and print.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace echelon::inline report {

constexpr std::size_t kPlotColours = 13;  // lines and parts beyond repeat the first ones

struct PlotPoint {
  double x = 0, y = 0, low = 0, high = 0;  // low = high = y: no bar
};
struct PlotLine {
  std::string name;
  std::vector<PlotPoint> points;
  std::optional<std::size_t> colour = {};  // index of the palette, modulo kPlotColours; else the line's place
  bool dashed = false;                     // with open points
};
struct LinePlot {
  std::string title, x_label, y_label;
  std::vector<PlotLine> lines;
  bool log2_x = false;    // numbers of ranks: 1, 2, 4, ..
  bool diagonal = false;  // y = x, as "ideal"
};
// Groups of stacked bars: one bar a name, one part a series; percent.
struct StackPlot {
  std::string title;
  std::vector<std::string> bars, parts;
  std::vector<std::vector<double>> values;  // by bar, by part; negative ones are drawn as 0
};

// "" where gnuplot is missing or draws nothing.
std::string draw_svg(const LinePlot& plot);
std::string draw_svg(const StackPlot& plot);
bool can_draw();
inline constexpr const char* kInstallGnuplot =
    "figures are left out: install gnuplot (Debian: apt install gnuplot-nox)";

}  // namespace echelon::inline report
