// SPDX-License-Identifier: Apache-2.0
// Runs the checks of `echelon verify` on all ranks and reports their results.
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
  std::string remark;  // why it failed and on which rank, or why it was skipped
};

struct RunOptions {
  std::string junit;   // path of a JUnit file; "": none
  std::string fault;   // a [fault] sentence for messages, with checks counted as steps; "": none
  double grace_s = 3;  // time for the other ranks to end a check after one has failed
};

// Collective. Rank 0 prints a line as each check ends and the table at the end, and writes the JUnit file. Returns 0,
// or 8 if a check failed. If a check does not end on every rank within its limit, or soon after it failed on one
// rank, the verification ends: rank 0 names the ranks that have not reached or not ended it, and every process exits
// with 8.
int run_verification(VerifyContext& context, const std::vector<VerifyCheck>& checks, const RunOptions& options);

// Return the table of rank 0, and the same as JUnit XML.
std::string table_of(const std::vector<CheckResult>& results);
std::string junit_of(const std::vector<CheckResult>& results);

}  // namespace echelon::verify
