// Convolutions of random shapes in random layouts: the library picks another body for nearly every shape, and some of
// those in bf16 were found to be wrong (src/device/onednn/conv.cpp).
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
  // Whole blocks of channels in a third of all cases.
  std::int64_t channels(std::int64_t groups) { return groups * (one_in(3) ? 16 * whole(1, 3) : whole(1, 40 / groups)); }

  ConvDims any() {
    ConvDims d;
    d.groups = one_in(4) ? whole(2, 4) : 1;
    d.N = whole(1, 3);
    d.C = channels(d.groups);
    d.K = channels(d.groups);
    d.H = whole(1, 13);
    d.W = whole(1, 13);
    const bool point = one_in(3);
    d.R = point ? 1 : whole(1, 5);
    d.S = point ? 1 : whole(1, 5);
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

}  // namespace

TEST_CASE("onednn: convolutions of random shapes", "[device][onednn][halves]") {
  const bool halves = GENERATE(false, true);
  constexpr int kShapes = 150;
  const auto device = make_onednn_device({.threads = 1, .emulate_halves = !multiplies_bf16()});
  CAPTURE(device->describe());
  Shapes shapes;
  for (int i = 0; i < kShapes; ++i) {
    const ConvDims d = shapes.draw();
    constexpr std::array kLayouts{Layout::plain, Layout::channels_last, Layout::blocked8, Layout::blocked16};
    WishingDevice wishing(*device, kLayouts[static_cast<std::size_t>(shapes.whole(0, 3))]);
    for (OpKind kind : {OpKind::conv_forward, OpKind::conv_backward_data, OpKind::conv_backward_weights}) {
      const OpCheck check = check_op(wishing, {kind, halves ? DType::bf16 : DType::f32, d, {}}, halves ? 2e-2 : 1e-5);
      INFO(check.message);
      CHECK(check.ok);
    }
  }
}
