// SPDX-License-Identifier: Apache-2.0
// Explains why runs that were given together are in separate tables: the keys in which their configs differ.
#pragma once

#include <string>
#include <vector>

#include "report/record.hpp"

namespace echelon::inline report {

// Returns one sentence per group of runs (RunRecord::group) except the first. It compares the group with the earlier
// group that differs in the fewest keys. Keys that a study is meant to vary (seed, batch, [exchange], [parallel]) are
// left out, and so are groups that differ in nothing else. Pure.
std::vector<std::string> separation_warnings(const std::vector<RunRecord>& runs);

}  // namespace echelon::inline report
