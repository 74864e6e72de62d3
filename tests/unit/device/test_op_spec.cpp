// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <set>

#include "base/error.hpp"
#include "device/op_spec.hpp"
#include "tests/support/device_contract.hpp"

using namespace echelon;

namespace {

OpSpec conv(const ConvDims& d, OpKind kind = OpKind::conv_forward) { return {kind, DType::f32, d, {}}; }

std::vector<std::string> names(const OpSpec& spec) {
  std::vector<std::string> all;
  for (const ArgInfo& arg : signature(spec)) all.emplace_back(arg.name);
  return all;
}

}  // namespace

TEST_CASE("op kinds have names, each its own", "[op_spec]") {
  std::set<std::string_view> all;
  for (OpKind kind : all_op_kinds()) all.insert(name_of(kind));
  CHECK(all.size() == all_op_kinds().size());
  CHECK(all.count("norm_local_backward") == 1);
}

TEST_CASE("window extents follow stride, padding and dilation", "[op_spec]") {
  CHECK(ConvDims{1, 1, {28, 28}, 1, {5, 5}}.P() == 24);
  const ConvDims d{
      .N = 1, .C = 1, .in = {7, 9}, .K = 1, .kernel = {3, 2}, .stride = {2, 1}, .pad = {1, 0}, .dil = {1, 4}};
  CHECK(d.P() == 4);
  CHECK(d.Q() == 5);
  CHECK(PoolDims{.N = 1, .C = 1, .in = {7, 8}, .kernel = {2, 3}, .stride = {2, 2}}.out().h == 3);
  CHECK(PoolDims{.N = 1, .C = 1, .in = {7, 8}, .kernel = {2, 3}, .stride = {2, 1}, .more_behind = 1}.out().h == 4);
  const SpatialExtents slabs =
      PoolDims{.N = 1, .C = 1, .in = {7, 8, 9}, .kernel = {2, 3, 1}, .stride = {2, 1, 1}, .more_behind = 1}.out();
  CHECK(slabs == SpatialExtents{4, 6, 9});
}

TEST_CASE("signatures list inputs first, with shapes", "[op_spec]") {
  const ConvDims d{.N = 2, .C = 4, .in = {8, 7}, .K = 6, .kernel = {3, 3}, .groups = 2};
  const auto args = signature(conv(d));
  REQUIRE(names(conv(d)) == std::vector<std::string>{"x", "w", "b", "y"});
  CHECK(args[0].shape == Shape{2, 4, 8, 7});
  CHECK(args[1].shape == Shape{6, 2, 3, 3});
  CHECK(args[3].shape == Shape{2, 6, 6, 5});
  CHECK(args[0].movable);
  CHECK(args[1].parameter);
  CHECK_FALSE(args[1].movable);
  const auto volume = signature(conv({.N = 2, .C = 4, .in = {8, 7, 6}, .K = 6, .kernel = {3, 1, 2}}));
  CHECK(volume[1].shape == Shape{6, 4, 3, 1, 2});
  CHECK(volume[3].shape == Shape{2, 6, 6, 7, 5});
  CHECK(volume[3].movable);
  CHECK(signature(conv({.N = 2, .C = 4, .in = {8}, .K = 6, .kernel = {3}}))[3].shape == Shape{2, 6, 6});
  ConvDims bare = d;
  bare.bias = false;
  CHECK(names(conv(bare, OpKind::conv_backward_weights)) == std::vector<std::string>{"x", "dy", "dw"});
  CHECK(signature(conv(d, OpKind::conv_backward_weights))[3].adds);
}

TEST_CASE("signatures of all kinds keep their own rules", "[op_spec]") {
  for (const OpSpec& spec : test::contract_specs(DType::f64)) {
    INFO(spec.text());
    bool outputs = false;
    for (const ArgInfo& arg : signature(spec)) {
      if (arg.role == ArgRole::output) outputs = true;
      CHECK((arg.role == ArgRole::output) == outputs);  // inputs come first
      CHECK_FALSE((arg.adds && arg.role == ArgRole::input));
      CHECK_FALSE((arg.parameter && arg.movable));
      CHECK_FALSE((arg.movable && arg.shape.rank() < 4));
    }
    CHECK(outputs);
    CHECK(flops(spec) > 0);
    CHECK(traffic_bytes(spec) > 0);
  }
}

TEST_CASE("dims that no op has are refused as a defect", "[op_spec]") {
  CHECK_THROWS_WITH(signature(conv({.N = 1, .C = 1, .in = {2, 9}, .K = 1, .kernel = {3, 3}})),
                    Catch::Contains("a window of 3x3 does not fit into an image of 2x9"));
  CHECK_THROWS_WITH(signature(conv({.N = 1, .C = 3, .in = {4, 4}, .K = 4, .kernel = {1, 1}, .groups = 2})),
                    Catch::Contains("2 groups do not divide"));
  CHECK_THROWS_AS(signature({OpKind::add, DType::f32, DenseDims{1, 2, 3}, {}}), Error);
  CHECK_THROWS_AS(signature({OpKind::add, DType::f32, ElementwiseDims{Shape{0, 3}}, {}}), Error);
  CHECK_THROWS_AS(signature({OpKind::pool_forward,
                             DType::f32,
                             PoolDims{.N = 1, .C = 1, .in = {4, 4}, .kernel = {2, 2}, .pad = {2, 0}},
                             {}}),
                  Error);
  for (const std::int64_t more : {-1, 2})
    CHECK_THROWS_AS(signature({OpKind::pool_forward,
                               DType::f32,
                               PoolDims{.N = 1, .C = 1, .in = {4, 4}, .kernel = {2, 2}, .more_behind = more},
                               {}}),
                    Error);
}

TEST_CASE("flops and traffic by formula", "[op_spec]") {
  const ConvDims d{.N = 2, .C = 4, .in = {5, 5}, .K = 6, .kernel = {3, 3}, .groups = 2};
  for (OpKind kind : {OpKind::conv_forward, OpKind::conv_backward_data, OpKind::conv_backward_weights})
    CHECK(flops(conv(d, kind)) == 2.0 * 2 * 6 * 3 * 3 * (2 * 3 * 3));
  CHECK(traffic_bytes(conv(d)) == 4.0 * (2 * 4 * 25 + 6 * 2 * 9 + 6 + 2 * 6 * 9));
  const OpSpec dense{OpKind::dense_forward, DType::f64, DenseDims{3, 7, 5}, {}};
  CHECK(flops(dense) == 2.0 * 3 * 7 * 5);
  CHECK(traffic_bytes(dense) == 8.0 * (21 + 35 + 5 + 15));
  CHECK(flops({OpKind::add, DType::f32, ElementwiseDims{Shape{3, 4}}, {}}) == 12);
  const OpSpec cut{OpKind::add, DType::f32, ElementwiseDims{.shape = Shape{3, 4}, .relu = true}, {}};
  const OpSpec masked{OpKind::masked_add, DType::f32, ElementwiseDims{Shape{3, 4}}, {}};
  CHECK(flops(cut) == 24);
  CHECK(flops(masked) == 24);
  CHECK(traffic_bytes(cut) == 4.0 * 3 * 12);
  CHECK(traffic_bytes(masked) == 4.0 * 4 * 12);
  CHECK(cut.text() == "add f32 (3, 4) relu");
  CHECK_THROWS_AS(signature({OpKind::masked_add, DType::f32, std::get<ElementwiseDims>(cut.dims), {}}), Error);
}

TEST_CASE("the text of a spec names kind and extents", "[op_spec]") {
  CHECK(conv({.N = 64, .C = 1, .in = {28, 28}, .K = 32, .kernel = {3, 3}, .pad = {1, 1}}).text() ==
        "conv_forward f32 N64 C1 H28 W28 K32 3x3 pad 1");
  CHECK(conv({.N = 1,
              .C = 4,
              .in = {9, 9},
              .K = 4,
              .kernel = {3, 2},
              .stride = {2, 1},
              .dil = {2, 2},
              .groups = 4,
              .bias = false})
            .text() == "conv_forward f32 N1 C4 H9 W9 K4 3x2 stride 2x1 dil 2 groups 4 no bias");
  CHECK(conv({.N = 1, .C = 2, .in = {4, 5, 6}, .K = 3, .kernel = {3, 2, 1}, .stride = {2, 1, 1}, .pad = {1, 1, 1}})
            .text() == "conv_forward f32 N1 C2 D4 H5 W6 K3 3x2x1 stride 2x1x1 pad 1");
  CHECK(conv({.N = 1, .C = 2, .in = {6}, .K = 3, .kernel = {3}}).text() == "conv_forward f32 N1 C2 W6 K3 3");
  CHECK(OpSpec{OpKind::reorder, DType::f64, ReorderDims{Shape{1, 2, 3, 4}}, {Layout::plain, Layout::blocked8}}.text() ==
        "reorder f64 (1, 2, 3, 4) plain to blocked8");
  std::set<std::string> texts;
  const auto specs = test::contract_specs(DType::f32);
  for (const OpSpec& spec : specs) texts.insert(spec.text());
  CHECK(texts.size() == specs.size());
}

TEST_CASE("stored elements include the padding of blocks", "[op_spec]") {
  CHECK(stored_elems(Shape{2, 17, 3, 3}, Layout::blocked8) == 2 * 24 * 9);
  CHECK(stored_elems(Shape{2, 16, 3, 3}, Layout::blocked16) == 2 * 16 * 9);
  CHECK(stored_elems(Shape{2, 17, 3, 3}, Layout::channels_last) == 2 * 17 * 9);
  CHECK(stored_elems(Shape{2, 17, 3, 3, 2}, Layout::blocked8) == 2 * 24 * 18);
  CHECK(stored_elems(Shape{17, 3}, Layout::plain) == 51);
}
