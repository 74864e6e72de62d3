// SPDX-License-Identifier: Apache-2.0
#include "device/conv_table.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

using namespace echelon;

TEST_CASE("a table of convolutions survives its text", "[device]") {
  const ConvDims one{
      .N = 4, .C = 3, .in = {9, 7}, .K = 5, .kernel = {3, 2}, .stride = {2, 1}, .pad = {0, 1}, .dil = {2, 1}};
  ConvDims two = one;
  two.bias = false;
  ConvTable table({ConvLayout::channels_last, true});
  const ConvChoice blocked{ConvLayout::blocked, false, true}, rule;
  table.set(one, blocked);
  table.set(two, rule);
  table.set({.N = 1, .C = 3, .in = {5, 6, 7}, .K = 4, .kernel = {3, 2, 1}, .pad = {1, 0, 0}}, blocked);
  CHECK(ConvTable::parse(table.text()) == table);
  CHECK(ConvTable::parse(ConvTable().text()) == ConvTable());

  ConvDims larger_batch = one, other = one;
  larger_batch.N = 64;
  other.pad.w = 0;
  CHECK(table.of(larger_batch) == blocked);
  CHECK(table.of(two) == rule);
  CHECK(table.of(other) == ConvChoice{ConvLayout::channels_last, true});
  table.set(larger_batch, rule);
  CHECK(table.of(one) == rule);
}

TEST_CASE("a damaged table of convolutions is refused", "[device]") {
  for (const char* text : {"", "rule", "others", "others sideways", "others rule 0", "others rule 02",
                           "others rule 00; blocked 00 1 2 3", "others rule 00; wide 00 1"})
    CHECK_THROWS_AS(ConvTable::parse(text), DataError);
}
