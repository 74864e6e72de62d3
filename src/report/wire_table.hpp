// SPDX-License-Identifier: Apache-2.0
// Reads back the wire matrix of an attempt (run/wire_matrix.hpp) and formats it as a table.
#pragma once

#include <string>
#include <vector>

#include "base/text.hpp"
#include "report/figures.hpp"

namespace echelon::inline report {

inline constexpr std::size_t kWireTableRanks = 16;  // most ranks of a readable table

using WireBytes = std::vector<std::vector<double>>;  // bytes per step, [from][to]

// Reads it from an attempt's folder; empty if there is no wire.json. Throws DataError if the file is damaged.
WireBytes read_wire(const std::string& attempt);

// Returns MB per step from each rank (rows) to each other rank (columns), with sums of both; all messages count. Empty
// for no ranks or more than kWireTableRanks.
Table wire_table(const WireBytes& bytes);

// "All ranks sent 24.1 MB a step, of that 23.6 MB for gradients and weights; by formula 23.6 MB."; "" without bytes.
std::string wire_text(const WireBytes& bytes, const RunFigures& run);

}  // namespace echelon::inline report
