// Runs the checks of `echelon verify` on all ranks, and what comes of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verify/check.hpp"

namespace echelon::verify {

enum class CheckVerdict : std::uint8_t { passed, failed, skipped };

struct CheckResult {
  std::string group, name;
  CheckVerdict verdict = CheckVerdict::passed;
  double seconds = 0;
  std::string remark;  // why it failed, by which rank; why it was skipped
};

struct RunOptions {
  std::string junit;   // "" : none
  std::string fault;   // [fault] sentence for the messages of the checks, whose steps are checks; "": none
  double grace_s = 3;  // after one rank has failed, for the others to end the check
};

// Collective. Rank 0 prints a line as each check ends and the table at the end, and writes the JUnit file. Returns 0,
// or 8 where a check failed. A check that does not end on every rank, by its limit or a while after it failed on one,
// ends the verification: rank 0 names the ranks that have not come to it or not ended it, and every process ends
// with 8.
int run_verification(VerifyContext& context, const std::vector<VerifyCheck>& checks, const RunOptions& options);

// The table of rank 0, and the same as JUnit XML.
std::string table_of(const std::vector<CheckResult>& results);
std::string junit_of(const std::vector<CheckResult>& results);

}  // namespace echelon::verify
