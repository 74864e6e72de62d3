// SPDX-License-Identifier: Apache-2.0
// Evidence of a made-up study, for tests of its pages and files.
#pragma once

#include <string>

#include "report/evidence.hpp"
#include "report/writers/writers.hpp"

namespace echelon::test {

// The name of a variant that has to be escaped in HTML and quoted in CSV.
inline constexpr const char* kOddName = "ring <a, b> & \"c\"";

// Settings in order: "plain" on 1 rank, kOddName on 1, "plain" on 2, kOddName on 2. The goal is test_accuracy 0.8,
// which only kOddName on 2 ranks misses; a host costs 3.6 EUR an hour. Each setting has a curve of two evaluations, at
// 640 and 1280 samples; the first evaluation of "plain" on 1 rank has no loss.
Evidence made_study();
ReportSource made_source();

}  // namespace echelon::test
