// The evidence of a study made up for tests of its pages and files.
#pragma once

#include <string>

#include "report/evidence.hpp"
#include "report/writers/writers.hpp"

namespace echelon::test {

// A name of a variant that has to be escaped in HTML and quoted in CSV.
inline constexpr const char* kOddName = "ring <a, b> & \"c\"";

// Settings, by ranks: "plain" on 1 rank, kOddName on 1, "plain" on 2, kOddName on 2. The goal is test_accuracy 0.8,
// which kOddName on 2 ranks alone does not reach; an hour of a host costs 3.6 EUR. Each setting has a curve of two
// evaluations, at 640 and 1280 samples; the first of "plain" on 1 rank knows no loss.
Evidence made_study();
ReportSource made_source();

}  // namespace echelon::test
