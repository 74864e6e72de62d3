// SPDX-License-Identifier: Apache-2.0
// Upsampling by our own loops over the lanes of pixels, in every layout. The library's linear resampling is its plain
// implementation for most layouts and cannot add to a gradient.
#include <array>
#include <vector>

#include "base/check.hpp"
#include "device/onednn/lanes.hpp"
#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {
namespace {

// The cells that one output reads, as pixels of its plane, and their weights.
struct Corners {
  int count = 0;
  std::array<std::int64_t, 8> pixel{};
  std::array<float, 8> weight{};
};

class Upsample final : public Op {
 public:
  Upsample(const Context& context, const OpSpec& spec)
      : d_(std::get<UpsampleDims>(spec.dims)),
        y_(d_.out()),
        backward_(spec.kind == OpKind::upsample_backward),
        planes_(d_.C, spec.layouts[0]),
        threads_(context.threads) {
    for (int axis = 0; axis < kMostAxes; ++axis)
      for (std::int64_t i = 0; i < y_[axis]; ++i)
        taps_[static_cast<std::size_t>(axis)].push_back(upsample_taps(i, d_.factor[axis], d_.in[axis], d_.linear));
  }
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const bool add = (args.accumulate & 2U) != 0;
    const auto* from = static_cast<const float*>(args.tensors[0]);
    auto* to = static_cast<float*>(args.tensors[1]);
    for_each_plane(threads_, d_.N, planes_, d_.N * d_.C * y_.cells(), [&]<int kLanes>(std::int64_t n, std::int64_t c) {
      const std::int64_t x = planes_.offset(n, c, d_.in.cells()), y = planes_.offset(n, c, y_.cells());
      backward_ ? backward<kLanes>(from + y, to + x, add) : forward<kLanes>(from + x, to + y);
    });
  }

 private:
  // Calls body(output pixel, corners) for every output of a plane.
  template <class Body>
  void for_each_output(const Body& body) const {
    std::int64_t out = 0;
    for (const UpsampleTaps& slab : taps_[0])
      for (const UpsampleTaps& row : taps_[1])
        for (const UpsampleTaps& column : taps_[2]) body(out++, corners(slab, row, column));
  }
  Corners corners(const UpsampleTaps& slab, const UpsampleTaps& row, const UpsampleTaps& column) const {
    Corners found;
    for (int k = 0; k < (slab.t > 0 ? 2 : 1); ++k)
      for (int j = 0; j < (row.t > 0 ? 2 : 1); ++j)
        for (int i = 0; i < (column.t > 0 ? 2 : 1); ++i) {
          const auto share = [](const UpsampleTaps& taps, int second) { return second ? taps.t : 1 - taps.t; };
          const auto cell = [](const UpsampleTaps& taps, int second) { return second ? taps.b : taps.a; };
          const auto at = static_cast<std::size_t>(found.count++);
          found.pixel[at] = (cell(slab, k) * d_.in.h + cell(row, j)) * d_.in.w + cell(column, i);
          found.weight[at] = static_cast<float>(share(slab, k) * share(row, j) * share(column, i));
        }
    return found;
  }

  template <int kLanes>
  void forward(const float* x, float* y) const {
    using L = Lanes<kLanes>;
    const std::int64_t pixel = planes_.pixel();
    for_each_output([&](std::int64_t out, const Corners& corners) {
      for (int v = 0; v < kLanes; v += L::kWidth) {
        typename L::Floats sum{};
        for (std::size_t i = 0; i < static_cast<std::size_t>(corners.count); ++i)
          sum += L::load(x + corners.pixel[i] * pixel + v) * corners.weight[i];
        L::store(y + out * pixel + v, sum);
      }
    });
  }

  template <int kLanes>
  void backward(const float* dy, float* dx, bool add) const {
    using L = Lanes<kLanes>;
    const std::int64_t pixel = planes_.pixel();
    for (std::int64_t i = 0; i < d_.in.cells() && !add; ++i) std::fill_n(dx + i * pixel, kLanes, 0.0f);
    for_each_output([&](std::int64_t out, const Corners& corners) {
      for (int v = 0; v < kLanes; v += L::kWidth) {
        const auto gradient = L::load(dy + out * pixel + v);
        for (std::size_t i = 0; i < static_cast<std::size_t>(corners.count); ++i) {
          float* at = dx + corners.pixel[i] * pixel + v;
          L::store(at, L::load(at) + gradient * corners.weight[i]);
        }
      }
    });
  }

  UpsampleDims d_;
  SpatialExtents y_;
  bool backward_;
  Planes planes_;
  int threads_;
  std::array<std::vector<UpsampleTaps>, kMostAxes> taps_;
};

}  // namespace

std::unique_ptr<Op> make_upsample(Context& context, const OpSpec& spec) {
  ECHELON_CHECK(spec.layouts[0] == spec.layouts[1], "the input and the output of an upsampling must have one layout");
  return std::make_unique<Upsample>(context, spec);
}

}  // namespace echelon::inline device::onednn
