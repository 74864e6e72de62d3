// "did you mean": the known name nearest to what was written.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline base {

// Edit distance with transpositions counted once (optimal string alignment).
int edit_distance(std::string_view a, std::string_view b);

// The nearest of `known`, whatever the case of letters, or "" where none is near (further than a third of the longer
// name, at least 2).
std::string nearest_name(std::string_view written, std::span<const std::string> known);

// "unknown layer 'cnov' (did you mean 'conv'?); known: conv, dense, ..."
std::string unknown_name(std::string_view what, std::string_view written, std::span<const std::string> known);

}  // namespace echelon::inline base
