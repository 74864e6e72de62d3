// The claim of a study (study/claim_section.hpp): registered before its first cell, recorded with its page.
#pragma once

#include <string>
#include <vector>

#include "study/study.hpp"

namespace echelon::cli {

// Before the first cell, by rank 0: <study>/claim.lock.json keeps the hash of the rule and the date, once for all
// launches. Nothing where the file has no [claim].
void register_claim(const StudyPlan& study);

// Writes <study>/claim.json from the cells that are over; its path, "" where the file has no [claim].
std::string write_claim(const StudyPlan& study, const std::vector<StudyCell>& cells);

}  // namespace echelon::cli
