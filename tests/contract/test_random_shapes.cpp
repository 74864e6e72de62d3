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
  ConvDims draw() {
    ConvDims d;
    do {
      d = any();
    } while (d.P() < 1 || d.Q() < 1);
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
    d.H = whole(1, 13);
    d.W = whole(1, one_in(4) ? 40 : 13);
    const bool point = one_in(3);
    d.R = point ? 1 : whole(1, 5);
    d.S = point ? 1 : whole(1, one_in(6) ? 11 : 5);
    d.stride_h = whole(1, 4);
    d.stride_w = one_in(2) ? d.stride_h : whole(1, 4);
    d.pad_h = whole(0, std::min<std::int64_t>(2, d.R - 1));
    d.pad_w = whole(0, std::min<std::int64_t>(2, d.S - 1));
    d.dil_h = d.dil_w = one_in(4) ? 2 : 1;
    d.bias = one_in(2);
    return d;
  }

  std::mt19937_64 engine_{test_seed()};
};

void check(Device& device, const OpSpec& spec) {
  const OpCheck result = check_op(device, spec, is_half(spec.dtype) ? 2e-2 : 1e-5);
  INFO(result.message);
  CHECK(result.ok);
}

void check_directions(Device& device, const ConvDims& dims, DType dtype) {
  for (OpKind kind : {OpKind::conv_forward, OpKind::conv_backward_data, OpKind::conv_backward_weights})
    check(device, {kind, dtype, dims, {}});
}

std::unique_ptr<Device> open() { return make_onednn_device({.threads = 1, .emulate_halves = !multiplies_bf16()}); }

constexpr std::array kLayouts{Layout::plain, Layout::channels_last, Layout::blocked8, Layout::blocked16};

}  // namespace

TEST_CASE("onednn: convolutions of random shapes", "[device][onednn][halves]") {
  const bool halves = GENERATE(false, true);
  constexpr int kShapes = 150;
  const auto device = open();
  CAPTURE(device->describe());
  Shapes shapes;
  for (int i = 0; i < kShapes; ++i) {
    const ConvDims d = shapes.draw();
    WishingDevice wishing(*device, kLayouts[static_cast<std::size_t>(shapes.whole(0, 3))]);
    check_directions(wishing, d, halves ? DType::bf16 : DType::f32);
  }
}

// Each case breaks one rule of conv_faults.cpp on a processor that has the body: AVX2, AVX512_BF16 or AMX.
TEST_CASE("onednn: convolutions at which a body of the library is wrong", "[device][onednn][halves]") {
  const auto device = open();
  for (const ConvDims& d : {
           ConvDims{.N = 2,
          .C = 16,
          .H = 9,
          .W = 2,
          .K = 16,
          .R = 3,
          .S = 3,
          .stride_h = 3,
          .stride_w = 3,
          .pad_h = 1,
          .pad_w = 1},  // columns of the kernel that cover only padding
           ConvDims{
               .N = 1, .C = 19, .H = 3, .W = 10, .K = 19, .R = 5, .S = 1, .stride_h = 4, .stride_w = 4, .pad_h = 2},
           ConvDims{.N = 3, .C = 37, .H = 13, .W = 8, .K = 36, .R = 1, .S = 1, .dil_h = 2, .dil_w = 2},  // dilated
           ConvDims{.N = 2,
           .C = 98,
           .H = 12,
           .W = 13,
           .K = 68,
           .R = 2,
           .S = 4,
           .stride_h = 4,
           .stride_w = 4,
           .pad_w = 2},  // tails of tiles, strided
           ConvDims{
               .N = 1, .C = 176, .H = 6, .W = 11, .K = 38, .R = 1, .S = 4, .stride_h = 4, .stride_w = 4, .pad_w = 3},
           ConvDims{.N = 3, .C = 11, .H = 12, .W = 11, .K = 34, .R = 1, .S = 1, .stride_h = 4},  // writes beyond
           ConvDims{.N = 1, .C = 18, .H = 4, .W = 2, .K = 2, .R = 1, .S = 1, .stride_h = 3, .stride_w = 3},  // crashes
           ConvDims{.N = 3, .C = 2, .H = 12, .W = 23, .K = 2, .R = 1, .S = 1, .stride_h = 3},  // beyond scratch, AVX2
       })
    for (Layout layout : kLayouts) {
      WishingDevice wishing(*device, layout);
      check_directions(wishing, d, DType::f32);
      check_directions(wishing, d, DType::bf16);
    }
}

// The library computes these as products on matrix units.
TEST_CASE("onednn: 1x1 convolutions with channels last", "[device][onednn][halves]") {
  const auto device = open();
  WishingDevice wishing(*device, Layout::channels_last);
  Shapes shapes;
  for (int i = 0; i < 30; ++i) {
    ConvDims d = shapes.draw();
    d.R = d.S = d.groups = d.dil_h = d.dil_w = 1;
    d.pad_h = d.pad_w = 0;
    d.bias = i % 3 == 0;
    check_directions(wishing, d, DType::bf16);
  }
}

TEST_CASE("onednn: products and recurrent layers of random shapes", "[device][onednn][halves]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  constexpr int kShapes = 40;
  const auto device = open();
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
