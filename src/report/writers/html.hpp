// A study as one self-contained HTML file: verdict, tables and figures; light, dark and print.
#pragma once

#include <string>

#include "report/evidence.hpp"
#include "report/verdict.hpp"
#include "report/writers/writers.hpp"

namespace echelon::inline report {

// `origin`: lines on builds, hosts, devices, commands and dates (origin_lines). Runs gnuplot; without it the page has
// the tables, and a line that tells what to install.
std::string study_html(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source,
                       const std::vector<std::string>& origin);

}  // namespace echelon::inline report
