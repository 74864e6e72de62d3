// SPDX-License-Identifier: Apache-2.0
// Reads study.json back. The file alone is enough to make verdict and page again and to repeat every test.
#pragma once

#include <string>

#include "report/evidence.hpp"
#include "report/writers/writers.hpp"

namespace echelon::inline report {

struct StudyFile {
  Evidence evidence;
  ReportSource source;  // the study that wrote the file
};

// Returns whether the file is a study's; false for other JSON and for a file that cannot be read.
bool is_study(const std::string& path);
// Throws DataError, with the path, if the file cannot be read or has another version.
StudyFile read_study(const std::string& path);

}  // namespace echelon::inline report
