// SPDX-License-Identifier: Apache-2.0
// A claim together with the cells that decide it, as `echelon scale` writes them beside the study (claim.json). The
// pages of `echelon report --claims` are made from these files alone.
#pragma once

#include <string>
#include <vector>

#include "report/claims/claim.hpp"
#include "report/figures.hpp"

namespace echelon::inline report {

struct ClaimRecord {
  Claim claim;
  std::string study = {}, commit = {}, date = {}, devices = {};  // `study`: its name; the others: of the last cell
  double machine_s = 0;                                          // machine time of all cells
  // Hash and date at the start of the study. If the hash differs from the claim's, the rule was changed afterwards.
  std::string registered_hash = {}, registered_date = {};
  std::vector<ClaimCell> cells = {};
};

// Returns everything that is claimed as one text. Claim::hash is the hash of this text.
std::string rule_text(const Claim& claim);

// Selects the figures of a run that the claim's tests name: "wire_bytes_per_step", "samples_per_s.median",
// "card_peak.largest", "card_peak.sum".
std::map<std::string, double> claimed_figures(const Claim& claim, const std::map<std::string, double>& all);
std::map<std::string, double> flat_figures(const RunFigures& figures);

std::string claim_json(const ClaimRecord& record);
// Throws DataError, with the path, if the file is not such a record.
ClaimRecord read_claim_record(const std::string& path);
// Reads every *.json of the folder, in the order of claim numbers. DataError: there is none, or a number occurs twice.
std::vector<ClaimRecord> read_claim_records(const std::string& folder);

}  // namespace echelon::inline report
