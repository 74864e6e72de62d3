// SPDX-License-Identifier: Apache-2.0
#include "device/conv_table.hpp"

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

std::string text_of(const ConvChoice& choice) {
  return fmt::format("{} {:d}{:d}", name_of(choice.layout), choice.library_data, choice.library_weights);
}

ConvChoice choice_from(std::istream& words) {
  std::string layout, library;
  words >> layout >> library;
  const auto* const found =
      std::find_if(kLayouts.begin(), kLayouts.end(), [&](ConvLayout each) { return layout == name_of(each); });
  if (found == kLayouts.end()) throw DataError(fmt::format("'{}' is no layout of convolutions", layout));
  if (library.size() != 2 || library.find_first_not_of("01") != std::string::npos)
    throw DataError(fmt::format("'{}' does not tell who computes the gradients of a convolution", library));
  return {*found, library[0] == '1', library[1] == '1'};
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

ConvChoice ConvTable::of(const ConvDims& conv) const {
  for (const auto& [dims, choice] : rows_)
    if (dims == without_batch(conv)) return choice;
  return others_;
}

void ConvTable::set(const ConvDims& conv, const ConvChoice& choice) {
  const ConvDims dims = without_batch(conv);
  for (auto& row : rows_)
    if (row.first == dims) return void(row.second = choice);
  rows_.emplace_back(dims, choice);
}

// "others channels_last 00; blocked 01 2 3 16 1 1 1 1 0 1 32 3 1 1 1 32 3 1 1 1 1; ..": layout, whether the
// library computes the gradients of data and weights, each_field(), then whether there is a bias.
std::string ConvTable::text() const {
  std::string text = "others " + text_of(others_);
  for (auto [dims, choice] : rows_) {
    text += "; " + text_of(choice);
    each_field(dims, [&](std::int64_t number) { text += fmt::format(" {}", number); });
    text += dims.bias ? " 1" : " 0";
  }
  return text;
}

ConvTable ConvTable::parse(std::string_view text) {
  std::istringstream rows{std::string(text)};
  std::string row, word;
  std::getline(rows, row, ';');
  std::istringstream others(row);
  others >> word;
  if (word != "others") throw DataError(fmt::format("'{}' is no table of convolutions", text));
  ConvTable table(choice_from(others));
  while (std::getline(rows, row, ';')) {
    std::istringstream words(row);
    const ConvChoice choice = choice_from(words);
    ConvDims dims{};
    int bias = 0;
    each_field(dims, [&](std::int64_t& number) { words >> number; });
    words >> bias;
    if (!words) throw DataError(fmt::format("'{}' is no row of a table of convolutions", row));
    dims.bias = bias != 0;
    table.set(dims, choice);
  }
  return table;
}

}  // namespace echelon::inline device
