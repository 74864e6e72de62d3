// SPDX-License-Identifier: Apache-2.0
// The page of `echelon report --claims`: one row per claim, the tests behind it, and a forest plot. It is made from the
// records alone, so that equal records give equal bytes.
#pragma once

#include <string>
#include <vector>

#include "report/claims/claim_record.hpp"
#include "report/claims/judge.hpp"

namespace echelon::inline report {

struct JudgedClaim {
  ClaimRecord record;
  ClaimVerdict verdict;
};

std::vector<JudgedClaim> judge_claims(const std::vector<ClaimRecord>& records);

// "5 claims: 4 confirmed, 1 refuted": only the words that occur.
std::string claims_headline(const std::vector<JudgedClaim>& claims);
std::string claims_text(const std::vector<JudgedClaim>& claims);  // for a terminal
// `plot`: path of the forest plot, relative to the page.
std::string claims_markdown(const std::vector<JudgedClaim>& claims, const std::string& plot);
// Draws every claim's effects and intervals on one axis, in units of the claim's smallest effect of interest.
std::string forest_svg(const std::vector<JudgedClaim>& claims);

// Writes <folder>/<name>.md and .svg and returns the paths.
std::vector<std::string> write_claims(const std::vector<JudgedClaim>& claims, const std::string& folder,
                                      const std::string& name);

}  // namespace echelon::inline report
