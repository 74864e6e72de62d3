// "did you mean": the known name nearest to what was written. Pure functions, any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline base {

// Least number of insertions, deletions, substitutions and swaps of neighbours that turn a into b, no character edited
// twice (optimal string alignment distance, case-sensitive). O(|a| |b|) time, O(|b|) memory.
int edit_distance(std::string_view a, std::string_view b);

// The entry of `known` at the least edit distance, upper and lower case being equal; of several the first. "" where all
// are further than max(2, a third of the longer name).
std::string nearest_name(std::string_view written, std::span<const std::string> known);

// "unknown layer 'cnov' (did you mean 'conv'?); known: conv, dense, ..."
std::string unknown_name(std::string_view what, std::string_view written, std::span<const std::string> known);

}  // namespace echelon::inline base
