// SPDX-License-Identifier: Apache-2.0
// Convolutions, products and recurrent layers of random shapes, and convolutions in random layouts: the library picks
// another body for nearly every shape, and some bodies in bf16 were wrong (src/device/onednn/conv_faults.cpp). Scratch
// holds NaN or 3e38 before each run.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <random>

#include "base/processor.hpp"
#include "device/onednn/onednn.hpp"
#include "tests/support/device_contract.hpp"
#include "tests/support/random.hpp"
#include "tests/support/wishing_device.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

class Shapes {
 public:
  ConvDims draw(bool volume = false) {
    ConvDims d;
    do {
      d = any();
      if (volume) deepen(d);
    } while (d.out().d < 1 || d.P() < 1 || d.Q() < 1);
    return d;
  }
  std::int64_t whole(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine_);
  }

 private:
  bool one_in(int n) { return whole(1, n) == 1; }
  // A third of all cases have whole blocks of channels; a few have more than four blocks.
  std::int64_t channels(std::int64_t groups) {
    return groups * (one_in(3) ? 16 * whole(1, 3) : whole(1, (one_in(6) ? 150 : 40) / groups));
  }

  ConvDims any() {
    ConvDims d;
    d.groups = one_in(4) ? whole(2, 4) : 1;
    d.N = whole(1, 3);
    d.C = channels(d.groups);
    d.K = channels(d.groups);
    d.in.h = whole(1, 13);
    d.in.w = whole(1, one_in(4) ? 40 : 13);
    const bool point = one_in(3);
    d.kernel.h = point ? 1 : whole(1, 5);
    d.kernel.w = point ? 1 : whole(1, one_in(6) ? 11 : 5);
    d.stride.h = whole(1, 4);
    d.stride.w = one_in(2) ? d.stride.h : whole(1, 4);
    d.pad.h = whole(0, std::min<std::int64_t>(2, d.kernel.h - 1));
    d.pad.w = whole(0, std::min<std::int64_t>(2, d.kernel.w - 1));
    d.dil.h = d.dil.w = one_in(4) ? 2 : 1;
    d.bias = one_in(2);
    return d;
  }

  // Makes a volume of the image, of which some are depthwise or dilated in depth.
  void deepen(ConvDims& d) {
    d.in.rank = 3;
    d.in.d = whole(1, 6);
    if (one_in(5)) d.K = d.C = d.groups = whole(2, 40);
    d.kernel.d = d.kernel.h == 1 && d.kernel.w == 1 ? 1 : whole(1, 3);
    d.stride.d = one_in(2) ? 1 : whole(1, 3);
    d.pad.d = whole(0, d.kernel.d - 1);
    d.dil.d = one_in(4) ? 2 : 1;
  }

  std::mt19937_64 engine_{test_seed()};
};

void check(Device& device, const OpSpec& spec) {
  const OpCheck result = check_op(device, spec,
                                  spec.dtype == DType::bf16  ? 2e-2
                                  : spec.dtype == DType::f16 ? 2e-3
                                                             : 1e-5);
  INFO(result.message);
  CHECK(result.ok);
}

void check_directions(Device& device, const ConvDims& dims, DType dtype) {
  for (OpKind kind : {OpKind::conv_forward, OpKind::conv_backward_data, OpKind::conv_backward_weights})
    check(device, {kind, dtype, dims, {}});
}

std::unique_ptr<Device> open(DType dtype) {
  return make_onednn_device({.threads = 1, .emulate_halves = is_half(dtype) && !multiplies_halves(dtype)});
}

constexpr std::array kLayouts{Layout::plain, Layout::channels_last, Layout::blocked8, Layout::blocked16};

}  // namespace

TEST_CASE("onednn: convolutions of random shapes", "[device][onednn][halves]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  constexpr int kShapes = 150;
  const auto device = open(dtype);
  CAPTURE(device->describe());
  Shapes shapes;
  for (int i = 0; i < kShapes; ++i) {
    const ConvDims d = shapes.draw();
    WishingDevice wishing(*device, kLayouts[static_cast<std::size_t>(shapes.whole(0, 3))]);
    check_directions(wishing, d, dtype);
  }
}

TEST_CASE("onednn: convolutions of volumes of random shapes", "[device][onednn][halves]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  constexpr int kShapes = 60;
  const auto device = open(dtype);
  CAPTURE(device->describe());
  Shapes shapes;
  for (int i = 0; i < kShapes; ++i) {
    const ConvDims d = shapes.draw(true);
    WishingDevice wishing(*device, kLayouts[static_cast<std::size_t>(shapes.whole(0, 3))]);
    check_directions(wishing, d, dtype);
  }
}

// Each case breaks one rule of conv_faults.cpp on a processor that has the body: AVX2, AVX512_BF16 or AMX.
TEST_CASE("onednn: convolutions at which a body of the library is wrong", "[device][onednn][halves]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const auto device = open(dtype);
  for (const ConvDims& d : {
           ConvDims{.N = 2,
          .C = 16,
          .in = {9, 2},
          .K = 16,
          .kernel = {3, 3},
          .stride = {3, 3},
          .pad = {1, 1}},  // columns of the kernel that cover only padding
           ConvDims{.N = 1, .C = 19, .in = {3, 10}, .K = 19, .kernel = {5, 1}, .stride = {4, 4}, .pad = {2, 0}},
           ConvDims{.N = 3, .C = 37, .in = {13, 8}, .K = 36, .kernel = {1, 1}, .dil = {2, 2}},  // dilated
           ConvDims{.N = 2,
           .C = 98,
           .in = {12, 13},
           .K = 68,
           .kernel = {2, 4},
           .stride = {4, 4},
           .pad = {0, 2}},  // tails of tiles, strided
           ConvDims{.N = 1, .C = 176, .in = {6, 11}, .K = 38, .kernel = {1, 4}, .stride = {4, 4}, .pad = {0, 3}},
           ConvDims{.N = 3, .C = 40, .in = {12, 35}, .K = 2, .kernel = {1, 5}, .stride = {3, 2}, .bias = false},
           ConvDims{.N = 1, .C = 64, .in = {12, 35}, .K = 16, .kernel = {1, 3}, .stride = {2, 2}},  // rows left out
           ConvDims{.N = 3, .C = 11, .in = {12, 11}, .K = 34, .kernel = {1, 1}, .stride = {4, 1}},  // writes beyond
           ConvDims{.N = 1, .C = 18, .in = {4, 2}, .K = 2, .kernel = {1, 1}, .stride = {3, 3}},     // crashes
           ConvDims{
               .N = 3, .C = 2, .in = {12, 23}, .K = 2, .kernel = {1, 1}, .stride = {3, 1}},  // beyond scratch, AVX2
       })
    for (Layout layout : kLayouts) {
      WishingDevice wishing(*device, layout);
      check_directions(wishing, d, dtype);
    }
}

TEST_CASE("onednn: convolutions of volumes whose windows do not overlap", "[device][onednn][halves]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const auto device = open(dtype);
  Shapes shapes;
  for (int i = 0; i < 24; ++i) {
    ConvDims d = shapes.draw(true);
    if (d.groups > 1) d.K = shapes.whole(1, 40);
    d.groups = d.dil.d = d.dil.h = d.dil.w = 1;
    d.pad = {};
    for (int axis = 0; axis < kMostAxes; ++axis) {
      d.kernel[axis] = shapes.whole(1, std::min<std::int64_t>(3, d.in[axis]));
      d.stride[axis] = d.kernel[axis] + shapes.whole(0, 1);
    }
    d.stride.h = std::max<std::int64_t>(d.stride.h, 2);
    WishingDevice wishing(*device, kLayouts[static_cast<std::size_t>(i % 4)]);
    check_directions(wishing, d, dtype);
    const OpSpec spec{.kind = OpKind::conv_forward, .dtype = dtype, .dims = d};
    CHECK(device->make(spec)->implementation().find("of windows") != std::string::npos);
  }
}

// The library computes these as products on matrix units.
TEST_CASE("onednn: 1x1 convolutions with channels last", "[device][onednn][halves]") {
  const auto device = open(DType::bf16);
  WishingDevice wishing(*device, Layout::channels_last);
  Shapes shapes;
  for (int i = 0; i < 30; ++i) {
    ConvDims d = shapes.draw();
    d.kernel.h = d.kernel.w = d.groups = d.dil.h = d.dil.w = 1;
    d.pad.h = d.pad.w = 0;
    d.bias = i % 3 == 0;
    check_directions(wishing, d, DType::bf16);
  }
}

TEST_CASE("onednn: products and recurrent layers of random shapes", "[device][onednn][halves]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  constexpr int kShapes = 40;
  const auto device = open(dtype);
  Shapes shapes;
  const auto size = [&] { return shapes.whole(0, 2) == 0 ? 16 * shapes.whole(1, 6) : shapes.whole(1, 90); };
  for (int i = 0; i < kShapes; ++i) {
    const DenseDims dense{size(), size(), size(), shapes.whole(0, 1) == 1};
    for (OpKind kind : {OpKind::dense_forward, OpKind::dense_backward_data, OpKind::dense_backward_weights})
      check(*device, {kind, dtype, dense, {}});
    constexpr std::array kCells{Cell::lstm, Cell::gru, Cell::tanh};
    const RnnDims rnn{.N = shapes.whole(1, 20),
                      .T = shapes.whole(1, 5),
                      .F = size(),
                      .H = size(),
                      .cell = kCells[static_cast<std::size_t>(shapes.whole(0, 2))]};
    for (OpKind kind : {OpKind::rnn_forward, OpKind::rnn_backward}) check(*device, {kind, dtype, rnn, {}});
  }
}
