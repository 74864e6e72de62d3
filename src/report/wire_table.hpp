// The wire matrix of an attempt (run/wire_matrix.hpp), read back, as a table.
#pragma once

#include <string>
#include <vector>

#include "base/text.hpp"
#include "report/figures.hpp"

namespace echelon::inline report {

inline constexpr std::size_t kWireTableRanks = 16;  // at most, of a table that is still read

using WireBytes = std::vector<std::vector<double>>;  // bytes a step, [from][to]

// Of an attempt's folder; empty where there is no wire.json. DataError where it is damaged.
WireBytes read_wire(const std::string& attempt);

// MB a step from each rank (rows) to each other one (columns), with sums of both; all messages are counted. Empty for
// no or more than kWireTableRanks ranks.
Table wire_table(const WireBytes& bytes);

// "All ranks sent 24.1 MB a step, of that 23.6 MB for gradients and weights; by formula 23.6 MB."; "" without bytes.
std::string wire_text(const WireBytes& bytes, const RunFigures& run);

}  // namespace echelon::inline report
