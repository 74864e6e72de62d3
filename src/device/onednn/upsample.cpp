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

// An output that reads a cell along one axis, and the cell's share of it.
struct Reader {
  std::int64_t output;
  double share;
};

// T is the type of activations and their gradients, float or BHalf.
template <class T>
class Upsample final : public Op {
 public:
  Upsample(const Context& context, const OpSpec& spec)
      : d_(std::get<UpsampleDims>(spec.dims)),
        y_(d_.out()),
        backward_(spec.kind == OpKind::upsample_backward),
        planes_(d_.C, spec.layouts[0]),
        threads_(context.threads) {
    for (int axis = 0; axis < kMostAxes; ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      readers_[at].resize(static_cast<std::size_t>(d_.in[axis]));
      for (std::int64_t i = 0; i < y_[axis]; ++i) {
        const UpsampleTaps taps = upsample_taps(i, d_.factor[axis], d_.in[axis], d_.linear);
        taps_[at].push_back(taps);
        readers_[at][static_cast<std::size_t>(taps.a)].push_back({i, 1 - taps.t});
        if (taps.t > 0) readers_[at][static_cast<std::size_t>(taps.b)].push_back({i, taps.t});
      }
    }
  }
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const bool add = (args.accumulate & 2U) != 0;
    const auto* from = static_cast<const T*>(args.tensors[0]);
    auto* to = static_cast<T*>(args.tensors[1]);
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
  void forward(const T* x, T* y) const {
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

  // Each cell of dx sums the outputs that read it, so that a gradient is rounded once.
  template <int kLanes>
  void backward(const T* dy, T* dx, bool add) const {
    using L = Lanes<kLanes>;
    const std::int64_t pixel = planes_.pixel();
    for (const std::vector<Reader>& slabs : readers_[0])
      for (const std::vector<Reader>& rows : readers_[1])
        for (const std::vector<Reader>& columns : readers_[2]) {
          typename L::Floats sums[L::kVectors] = {};
          for (int v = 0; v < L::kVectors && add; ++v) sums[v] = L::load(dx + v * L::kWidth);
          for (const Reader& slab : slabs)
            for (const Reader& row : rows)
              for (const Reader& column : columns) {
                const auto weight = static_cast<float>(slab.share * row.share * column.share);
                const T* from = dy + ((slab.output * y_.h + row.output) * y_.w + column.output) * pixel;
                for (int v = 0; v < L::kVectors; ++v) sums[v] += L::load(from + v * L::kWidth) * weight;
              }
          for (int v = 0; v < L::kVectors; ++v) L::store(dx + v * L::kWidth, sums[v]);
          dx += pixel;
        }
  }

  UpsampleDims d_;
  SpatialExtents y_;
  bool backward_;
  Planes planes_;
  int threads_;
  std::array<std::vector<UpsampleTaps>, kMostAxes> taps_;            // by axis and output
  std::array<std::vector<std::vector<Reader>>, kMostAxes> readers_;  // by axis and cell of x
};

}  // namespace

std::unique_ptr<Op> make_upsample(Context& context, const OpSpec& spec) {
  ECHELON_CHECK(spec.layouts[0] == spec.layouts[1], "the input and the output of an upsampling must have one layout");
  return make_stored<Upsample>(spec.dtype, context, spec);
}

}  // namespace echelon::inline device::onednn
