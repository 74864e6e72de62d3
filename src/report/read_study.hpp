// study.json read back: verdict and page can be made again from the file alone, and every test be repeated.
#pragma once

#include <string>

#include "report/evidence.hpp"
#include "report/writers/writers.hpp"

namespace echelon::inline report {

struct StudyFile {
  Evidence evidence;
  ReportSource source;  // of the study that wrote it
};

// Whether the file is a study's; false for other JSON and for what cannot be read.
bool is_study(const std::string& path);
// DataError with the path where the file cannot be read or is of another version.
StudyFile read_study(const std::string& path);

}  // namespace echelon::inline report
