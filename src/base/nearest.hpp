// SPDX-License-Identifier: Apache-2.0
// "did you mean": finds the known name nearest to the one that was written. Pure functions, callable from any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline base {

// Returns the smallest number of insertions, deletions, substitutions and swaps of neighbours that turn a into b, with
// no character edited twice (optimal string alignment distance, case-sensitive). O(|a| |b|) time, O(|b|) memory.
int edit_distance(std::string_view a, std::string_view b);

// Returns the entry of `known` with the smallest edit distance, ignoring case; the first of several. "" if all are
// further away than max(2, a third of the longer name).
std::string nearest_name(std::string_view written, std::span<const std::string> known);

// "unknown layer 'cnov' (did you mean 'conv'?); known: conv, dense, ..."
std::string unknown_name(std::string_view what, std::string_view written, std::span<const std::string> known);

}  // namespace echelon::inline base
