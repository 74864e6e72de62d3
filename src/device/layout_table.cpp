// SPDX-License-Identifier: Apache-2.0
#include "device/layout_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "base/error.hpp"

namespace echelon::inline device {
namespace {

constexpr std::array<ConvLayout, 3> kLayouts = {ConvLayout::rule, ConvLayout::channels_last, ConvLayout::blocked};

ConvDims without_batch(ConvDims conv) {
  conv.N = 0;
  return conv;
}

// Calls field(number) for the numbers of a row in the order of its text.
template <class Field>
void each_field(ConvDims& d, const Field& field) {
  std::int64_t rank = d.in.rank;
  for (std::int64_t* number : {&rank, &d.C, &d.K, &d.groups}) field(*number);
  d.in.rank = static_cast<int>(rank);
  for (int axis = 0; axis < kMostAxes; ++axis)
    for (std::int64_t* number : {&d.in[axis], &d.kernel[axis], &d.stride[axis], &d.pad[axis], &d.dil[axis]})
      field(*number);
}

ConvLayout layout_named(const std::string& name) {
  const auto* const found =
      std::find_if(kLayouts.begin(), kLayouts.end(), [&](ConvLayout layout) { return name == name_of(layout); });
  if (found == kLayouts.end()) throw DataError(fmt::format("'{}' is no layout of convolutions", name));
  return *found;
}

}  // namespace

std::string_view name_of(ConvLayout layout) {
  switch (layout) {
    case ConvLayout::rule: return "rule";
    case ConvLayout::channels_last: return "channels_last";
    case ConvLayout::blocked: return "blocked";
  }
  return "?";
}

ConvLayout LayoutTable::of(const ConvDims& conv) const {
  for (const auto& [dims, layout] : rows_)
    if (dims == without_batch(conv)) return layout;
  return others_;
}

void LayoutTable::set(const ConvDims& conv, ConvLayout layout) {
  const ConvDims dims = without_batch(conv);
  for (auto& row : rows_)
    if (row.first == dims) return void(row.second = layout);
  rows_.emplace_back(dims, layout);
}

// "others channels_last; blocked 2 3 16 1 1 1 1 0 1 32 3 1 1 1 32 3 1 1 1 1; ..": each_field(), then whether there is a
// bias.
std::string LayoutTable::text() const {
  std::string text = fmt::format("others {}", name_of(others_));
  for (auto [dims, layout] : rows_) {
    text += fmt::format("; {}", name_of(layout));
    each_field(dims, [&](std::int64_t number) { text += fmt::format(" {}", number); });
    text += dims.bias ? " 1" : " 0";
  }
  return text;
}

LayoutTable LayoutTable::parse(std::string_view text) {
  std::istringstream rows{std::string(text)};
  std::string row, word;
  std::getline(rows, row, ';');
  std::istringstream others(row);
  others >> word;
  if (word != "others") throw DataError(fmt::format("'{}' is no table of layouts", text));
  others >> word;
  LayoutTable table(layout_named(word));
  while (std::getline(rows, row, ';')) {
    std::istringstream words(row);
    words >> word;
    ConvDims dims{};
    int bias = 0;
    each_field(dims, [&](std::int64_t& number) { words >> number; });
    words >> bias;
    if (!words) throw DataError(fmt::format("'{}' is no row of a table of layouts", row));
    dims.bias = bias != 0;
    table.set(dims, layout_named(word));
  }
  return table;
}

}  // namespace echelon::inline device
