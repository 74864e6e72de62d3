// SPDX-License-Identifier: Apache-2.0
// Draws a square matrix as a heat map.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline report {

struct HeatMap {
  std::string title, rows, columns;  // headings: "from", "to"
  std::vector<std::string> labels;   // labels of both rows and columns
  std::vector<double> values;        // [row * labels + column], > 0; NaN: left blank; 0: crossed out
  std::vector<std::string> texts;    // texts of the cells, shown for up to 16 labels and when the pointer is on a cell
};

// Returns a standalone SVG file for light and dark pages and for print. The darker the cell, the smaller its value, on
// a logarithmic scale from the smallest value to the largest; the legend shows both.
std::string heat_map_svg(const HeatMap& map);

}  // namespace echelon::inline report
