// SPDX-License-Identifier: Apache-2.0
// The claim of a study (study/claim_section.hpp): registered before its first cell, written with its page.
#pragma once

#include <string>
#include <vector>

#include "study/study.hpp"

namespace echelon::cli {

// Rank 0 calls it before the first cell. Stores the hash of the rule and the date in <study>/claim.lock.json, once for
// all launches. Does nothing if the file has no [claim].
void register_claim(const StudyPlan& study);

// Writes <study>/claim.json from the cells that are over and returns its path; "" if the file has no [claim].
std::string write_claim(const StudyPlan& study, const std::vector<StudyCell>& cells);

}  // namespace echelon::cli
