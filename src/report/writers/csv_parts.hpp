// What the CSV files of reports have in common.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/scaling.hpp"

namespace echelon::inline report {

std::string number_cell(double value);  // ten significant digits; "" where it is unknown or infinite
// Heading and cell of each figure of the row that is a single value, in the order of the list of figures; of lists the
// largest.
std::vector<std::pair<std::string, std::string>> row_cells(const ScalingRow& row);

}  // namespace echelon::inline report
