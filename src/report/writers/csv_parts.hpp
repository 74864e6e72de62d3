// SPDX-License-Identifier: Apache-2.0
// Shared by the writers of CSV reports.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/scaling.hpp"

namespace echelon::inline report {

std::string number_cell(double value);  // ten significant digits; "" if unknown or infinite
// Returns heading and cell of each single-valued figure of the row, in the order of the list of figures; for lists the
// largest entry.
std::vector<std::pair<std::string, std::string>> row_cells(const ScalingRow& row);

}  // namespace echelon::inline report
