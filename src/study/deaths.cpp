// SPDX-License-Identifier: Apache-2.0
#include "study/deaths.hpp"

#include <algorithm>

namespace echelon::inline study {
namespace {

using Told = CellDeath::Told;

bool taken_along(const CellDeath& death, const std::vector<CellDeath>& all) {
  return std::any_of(all.begin(), all.end(), [&](const CellDeath& other) {
    return other.launch == death.launch && other.told == Told::error &&
           (death.told != Told::error || other.told_s < death.told_s);
  });
}

}  // namespace

std::vector<Blame> judge_deaths(const std::vector<CellDeath>& deaths) {
  std::vector<Blame> out;
  for (const CellDeath& death : deaths) {
    if (death.progressed && death.told != Told::error)
      out.push_back(Blame::cleared);
    else
      out.push_back(death.told == Told::stopped || taken_along(death, deaths) ? Blame::spared : Blame::counted);
  }
  return out;
}

}  // namespace echelon::inline study
