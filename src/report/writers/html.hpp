// SPDX-License-Identifier: Apache-2.0
// A study as one self-contained HTML file: answer first, then figures and tables; for light, dark, phone and print.
#pragma once

#include <string>

#include "report/evidence.hpp"
#include "report/verdict.hpp"
#include "report/writers/writers.hpp"

namespace echelon::inline report {

// `origin`: lines about builds, hosts, devices, commands and dates (origin_lines).
std::string study_html(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source,
                       const std::vector<std::string>& origin);

}  // namespace echelon::inline report
