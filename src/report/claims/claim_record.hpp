// A claim and the cells that decide it, as `echelon scale` writes them beside the study: claim.json. The pages of
// `echelon report --claims` are made from such files alone.
#pragma once

#include <string>
#include <vector>

#include "report/claims/claim.hpp"
#include "report/figures.hpp"

namespace echelon::inline report {

struct ClaimRecord {
  Claim claim;
  std::string study = {}, commit = {}, date = {}, devices = {};  // of the study: its name; of the last cell
  double machine_s = 0;                                          // of all cells
  // The hash and the date with which the study began; another hash than the claim's: the rule was changed afterwards.
  std::string registered_hash = {}, registered_date = {};
  std::vector<ClaimCell> cells = {};
};

// Everything that is claimed, in one text: what Claim::hash is taken of.
std::string rule_text(const Claim& claim);

// The figures that the claim's tests name, of those of a run: "wire_bytes_per_step", "samples_per_s.median",
// "card_peak.largest", "card_peak.sum".
std::map<std::string, double> claimed_figures(const Claim& claim, const std::map<std::string, double>& all);
std::map<std::string, double> flat_figures(const RunFigures& figures);

std::string claim_json(const ClaimRecord& record);
// DataError with the path where the file is no such record.
ClaimRecord read_claim_record(const std::string& path);
// Every *.json of the folder, by the claims' numbers. DataError where there is none, or where two have one number.
std::vector<ClaimRecord> read_claim_records(const std::string& folder);

}  // namespace echelon::inline report
