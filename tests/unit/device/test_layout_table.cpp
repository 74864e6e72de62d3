// SPDX-License-Identifier: Apache-2.0
#include "device/layout_table.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

using namespace echelon;

TEST_CASE("a table of layouts survives its text", "[device]") {
  const ConvDims one{.N = 4, .C = 3, .H = 9, .W = 7, .K = 5, .R = 3, .S = 2, .stride_h = 2, .pad_w = 1, .dil_h = 2};
  ConvDims two = one;
  two.bias = false;
  LayoutTable table(ConvLayout::channels_last);
  table.set(one, ConvLayout::blocked);
  table.set(two, ConvLayout::rule);
  CHECK(LayoutTable::parse(table.text()) == table);
  CHECK(LayoutTable::parse(LayoutTable().text()) == LayoutTable());

  ConvDims larger_batch = one, other = one;
  larger_batch.N = 64;
  other.pad_w = 0;
  CHECK(table.of(larger_batch) == ConvLayout::blocked);
  CHECK(table.of(two) == ConvLayout::rule);
  CHECK(table.of(other) == ConvLayout::channels_last);
  table.set(larger_batch, ConvLayout::rule);
  CHECK(table.of(one) == ConvLayout::rule);
}

TEST_CASE("a damaged table of layouts is refused", "[device]") {
  for (const char* text :
       {"", "rule", "others", "others sideways", "others rule; blocked 1 2 3", "others rule; wide 1"})
    CHECK_THROWS_AS(LayoutTable::parse(text), DataError);
}
