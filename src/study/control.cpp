// SPDX-License-Identifier: Apache-2.0
#include "study/control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/figures.hpp"

namespace echelon::inline study {

std::vector<RoundControl> judge_rounds(const std::vector<double>& rates) {
  std::vector<double> known;
  std::copy_if(rates.begin(), rates.end(), std::back_inserter(known), [](double rate) { return std::isfinite(rate); });
  const double middle = median(known);
  std::vector<RoundControl> rounds;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const double change = rates[i] / middle - 1;
    rounds.push_back({.round = static_cast<int>(i) + 1,
                      .rate = rates[i],
                      .change = change,
                      .moved = known.size() > 1 && std::fabs(change) > kMostMoved});
  }
  return rounds;
}

std::string control_text(const std::vector<RoundControl>& rounds) {
  std::string text;
  double most = 0;
  int known = 0;
  for (const RoundControl& round : rounds) {
    if (!std::isfinite(round.rate)) continue;
    ++known;
    most = std::max(most, std::fabs(round.change));
    if (round.moved)
      text += fmt::format("machine   round {}: the control cell was {:.0f} % {} than in the median round\n",
                          round.round, 100 * std::fabs(round.change), round.change < 0 ? "slower" : "faster");
  }
  if (known < 2) return "";
  if (!text.empty()) return text + "          compare times of these rounds with those of the others only with care\n";
  return fmt::format("machine   steady: the control cell changed by at most {:.1f} % over {} rounds\n", 100 * most,
                     known);
}

std::string control_json(const std::vector<RoundControl>& rounds) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const RoundControl& round : rounds)  // NaN is written as null
    all.push_back({{"round", round.round},
                   {"control_samples_per_s", round.rate},
                   {"change", round.change},
                   {"moved", round.moved}});
  return nlohmann::ordered_json{{"most_moved", kMostMoved}, {"rounds", all}}.dump(2) + "\n";
}

}  // namespace echelon::inline study
