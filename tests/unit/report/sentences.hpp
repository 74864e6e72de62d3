// SPDX-License-Identifier: Apache-2.0
// A verdict as text, for tests that look for sentences.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "report/verdict.hpp"

namespace echelon::test {

// Returns all sentences of the verdict in reading order, one a line: headlines, rows, limits, caveats.
inline std::string text_of(const StudyVerdict& verdict) {
  std::string out = verdict.headline + "\n";
  const bool several = verdict.environments.size() > 1;
  if (several)
    for (const EnvironmentVerdict& e : verdict.environments) out += fmt::format("{}: {}\n", e.environment, e.headline);
  for (const GoalRow& row : verdict.rows)
    out += fmt::format("{}If you want {}\n", several ? row.environment + ": " : "", row.text);
  for (const EnvironmentVerdict& e : verdict.environments)
    for (const PricedGain& gain : e.faster_but_worse)
      out += fmt::format("{}Faster, but worse: {}\n", several ? e.environment + ": " : "", gain.text);
  for (const std::vector<std::string>* lines : {&verdict.limits, &verdict.caveats})
    for (const std::string& line : *lines) out += line + "\n";
  return out;
}

}  // namespace echelon::test
