// SPDX-License-Identifier: Apache-2.0
// The checksum of a model's weights, split in several ways.
#include "run/model_checksum.hpp"

#include <catch2/catch.hpp>

#include "device/reference/reference.hpp"

namespace echelon {
namespace {

Parameter slice(const char* name, const Shape& whole, const Shape& shape, const Shape& offset) {
  Parameter part;
  part.name = name, part.global_shape = whole, part.shape = shape, part.offset = offset;
  part.init = {Init::Kind::normal, 1};
  return part;
}

// Returns the checksum of initial weights, which depend only on name and place in the whole tensor.
std::uint64_t checksum(const std::vector<Parameter>& parameters, bool counts_whole, std::uint64_t seed = 3) {
  const auto device = make_reference_device({});
  ParameterSet set;
  for (const Parameter& parameter : parameters) set.add(parameter);
  Arenas arenas(*device, set, DType::f32);
  arenas.initialise(seed);
  return model_checksum(arenas, counts_whole);
}

TEST_CASE("one model has one checksum, however it is cut", "[run]") {
  const Shape wide{6, 5, 3}, bias{7};
  const Parameter a = slice("a", wide, wide, {0, 0, 0}), b = slice("b", bias, bias, {0}),
                  c = slice("c", bias, bias, {0});
  const std::uint64_t whole = checksum({a, b, c}, true);
  CHECK(checksum({c, a, b}, true) == whole);                     // in another order
  CHECK(checksum({a}, true) + checksum({b, c}, true) == whole);  // stages of a pipeline
  for (std::size_t axis = 0; axis < 3; ++axis) {                 // shards: one of them counts what both hold
    CAPTURE(axis);
    std::vector<std::int64_t> low = {6, 5, 3}, high = low, at = {0, 0, 0};
    low[axis] = 2, high[axis] -= 2, at[axis] = 2;
    const Parameter first = slice("a", wide, Shape(low), {0, 0, 0}), second = slice("a", wide, Shape(high), Shape(at));
    CHECK(checksum({first, b, c}, true) + checksum({second, b, c}, false) == whole);
  }
  CHECK(checksum({a, b, c}, true, 4) != whole);
  CHECK(checksum({a, b, slice("d", bias, bias, {0})}, true) != whole);
}

}  // namespace
}  // namespace echelon
