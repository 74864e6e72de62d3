// SPDX-License-Identifier: Apache-2.0
// How convolutions are computed where that was measured instead of chosen by a device's rules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/ops/conv.hpp"

namespace echelon::inline device {

// The layouts in which a convolution computes, where its device has fast code for them; else the device's rule decides.
enum class ConvLayout : std::uint8_t { rule, channels_last, blocked };

std::string_view name_of(ConvLayout layout);

struct ConvChoice {
  ConvLayout layout = ConvLayout::rule;
  // The library computes a gradient, even where the device has code of its own for it.
  bool library_data = false, library_weights = false;
  bool operator==(const ConvChoice&) const = default;
};

class ConvTable {
 public:
  ConvTable() = default;
  // All convolutions alike.
  explicit ConvTable(const ConvChoice& others) : others_(others) {}

  // The choice for a convolution, whatever its N.
  ConvChoice of(const ConvDims& conv) const;
  void set(const ConvDims& conv, const ConvChoice& choice);
  bool operator==(const ConvTable&) const = default;

  // One line of text, without N; parse() throws DataError for another text.
  std::string text() const;
  static ConvTable parse(std::string_view text);

 private:
  ConvChoice others_;
  std::vector<std::pair<ConvDims, ConvChoice>> rows_;  // with N = 0
};

}  // namespace echelon::inline device
