// Why a card runs below its clock though there is work: what [monitor] throttling tells. A limit of power that software
// keeps is none of these: under load it is the rule.
#pragma once

#include <string>

namespace echelon::inline device {

inline constexpr unsigned kTooHot = 1;      // the card or its memory
inline constexpr unsigned kPowerBrake = 2;  // the power supply or the host asks for less

// "its temperature", "the host's power brake", or both; "" for 0.
inline std::string throttling_text(unsigned reasons) {
  std::string text = (reasons & kTooHot) != 0 ? "its temperature" : "";
  if ((reasons & kPowerBrake) != 0) text += text.empty() ? "the host's power brake" : " and the host's power brake";
  return text;
}

}  // namespace echelon::inline device
