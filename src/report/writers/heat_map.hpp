// A square matrix as a figure.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline report {

struct HeatMap {
  std::string title, rows, columns;  // headings: "from", "to"
  std::vector<std::string> labels;   // of rows and columns
  std::vector<double> values;        // [row * labels + column], > 0; NaN: left blank; 0: crossed out
  std::vector<std::string> texts;    // of cells, shown for up to 16 labels and on pointing at a cell
};

// An SVG file of its own, for light and dark pages and for print: the darker the cell, the smaller the value, on a
// logarithmic scale from the smallest to the largest. The smallest and the largest value are in the legend.
std::string heat_map_svg(const HeatMap& map);

}  // namespace echelon::inline report
