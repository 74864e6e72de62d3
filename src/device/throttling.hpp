// SPDX-License-Identifier: Apache-2.0
// The reasons why a card runs below its clock although it has work, as reported by [monitor] throttling. A software
// power limit is not included, because it is normal under load.
#pragma once

#include <string>

namespace echelon::inline device {

inline constexpr unsigned kTooHot = 1;      // the card or its memory is too hot
inline constexpr unsigned kPowerBrake = 2;  // the power supply or the host requests less power

// Returns "its temperature", "the host's power brake", or both; "" for 0.
inline std::string throttling_text(unsigned reasons) {
  std::string text = (reasons & kTooHot) != 0 ? "its temperature" : "";
  if ((reasons & kPowerBrake) != 0) text += text.empty() ? "the host's power brake" : " and the host's power brake";
  return text;
}

}  // namespace echelon::inline device
