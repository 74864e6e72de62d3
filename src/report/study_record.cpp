// SPDX-License-Identifier: Apache-2.0
#include "report/study_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "base/nearest.hpp"

namespace echelon::inline report {
namespace {

constexpr std::array<const char*, 3> kOutcomes = {"finished", "diverged", "failed"};
constexpr std::array<const char*, 3> kAnswers = {"yes", "no", "not decided"};

}  // namespace

const char* outcome_name(Outcome outcome) { return kOutcomes.at(static_cast<std::size_t>(outcome)); }

Outcome outcome_of(const std::string& name) {
  const auto at = std::find(kOutcomes.begin(), kOutcomes.end(), name);
  if (at == kOutcomes.end())
    throw ConfigError(unknown_name("outcome", name, std::vector<std::string>{kOutcomes.begin(), kOutcomes.end()}));
  return static_cast<Outcome>(at - kOutcomes.begin());
}

const char* answer_name(Answer answer) { return kAnswers.at(static_cast<std::size_t>(answer)); }

bool Repetition::marked() const { return std::fabs(machine - 1) > kMachineMoved; }

bool StudyVerdict::met() const {
  return std::all_of(goals.begin(), goals.end(), [](const GoalLine& goal) { return goal.met; });
}

}  // namespace echelon::inline report
