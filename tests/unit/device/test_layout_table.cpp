// SPDX-License-Identifier: Apache-2.0
#include "device/layout_table.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

using namespace echelon;

TEST_CASE("a table of layouts survives its text", "[device]") {
  const ConvDims one{
      .N = 4, .C = 3, .in = {9, 7}, .K = 5, .kernel = {3, 2}, .stride = {2, 1}, .pad = {0, 1}, .dil = {2, 1}};
  ConvDims two = one;
  two.bias = false;
  LayoutTable table(ConvLayout::channels_last);
  table.set(one, ConvLayout::blocked);
  table.set(two, ConvLayout::rule);
  table.set({.N = 1, .C = 3, .in = {5, 6, 7}, .K = 4, .kernel = {3, 2, 1}, .pad = {1, 0, 0}}, ConvLayout::blocked);
  CHECK(LayoutTable::parse(table.text()) == table);
  CHECK(LayoutTable::parse(LayoutTable().text()) == LayoutTable());

  ConvDims larger_batch = one, other = one;
  larger_batch.N = 64;
  other.pad.w = 0;
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
