// SPDX-License-Identifier: Apache-2.0
// Layouts of convolutions that were measured instead of chosen by a device's rule.
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

class LayoutTable {
 public:
  LayoutTable() = default;
  // All convolutions alike.
  explicit LayoutTable(ConvLayout others) : others_(others) {}

  // The layout of a convolution, whatever its N.
  ConvLayout of(const ConvDims& conv) const;
  void set(const ConvDims& conv, ConvLayout layout);
  bool operator==(const LayoutTable&) const = default;

  // One line of text, without N; parse() throws DataError for another text.
  std::string text() const;
  static LayoutTable parse(std::string_view text);

 private:
  ConvLayout others_ = ConvLayout::rule;
  std::vector<std::pair<ConvDims, ConvLayout>> rows_;  // with N = 0
};

}  // namespace echelon::inline device
