// SPDX-License-Identifier: Apache-2.0
// [claim] of a study's file: the claim that the study's cells decide (report/claims/claim.hpp). Example:
//
//   [claim]
//   number = 24
//   sentence = "A ring sends 2(k-1)G in 2(k-1) hops, everyone to everyone k(k-1)G."
//   source = "Large-scale training, section 3"
//   instrument = "exact"                    # exact | real | paced | shaped | predicted
//   margin = 0.01                           # least effect of interest
//   let = { G = "4 * parameters" }          # names for formulas
//   [[claim.tests]]
//   says = "The ring's bytes are those of the formula."
//   kind = "formula"                        # ratio, difference, formula, trend, equivalent, interaction, order, share
//   figure = "wire_bytes_per_step"
//   where = ["exchange.algorithm=ring"]
//   formula = "2 * (ranks - 1) * G"
//   within = 0
#pragma once

#include <optional>
#include <string>

#include "report/claims/claim.hpp"

namespace echelon::inline study {

// Returns none if the file has no [claim]. Throws ConfigError with file:line:column and the nearest valid choice.
std::optional<Claim> read_claim(const std::string& path);

}  // namespace echelon::inline study
