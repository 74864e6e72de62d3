// The wire matrix of an attempt (run/wire_matrix.hpp) as a table.
#pragma once

#include "base/text.hpp"
#include "report/figures.hpp"

namespace echelon::inline report {

inline constexpr std::size_t kWireTableRanks = 16;  // at most, of a table that is still read

// `attempt`: its folder. MB a step from each rank (rows) to each other one (columns), with sums of both; all messages
// are counted. Empty where wire.json is missing or has more than kWireTableRanks ranks. DataError where it is damaged.
Table wire_table(const std::string& attempt);

// "All ranks sent 24.1 MB a step, of that 23.6 MB gradients; by formula 23.6 MB."; "" where nothing is known.
std::string wire_text(const std::string& attempt, const RunFigures& run);

}  // namespace echelon::inline report
