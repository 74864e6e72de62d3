// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/place.hpp"
#include "cuda/kernels/upsample.hpp"

namespace echelon::cuda {
namespace {

// The two cells that an output reads along one axis (upsample_taps), and the weight of the second.
struct Taps {
  std::int64_t a, b;
  double t;
  __device__ std::int64_t cell(int second) const { return second ? b : a; }
  __device__ double weight(int second) const { return second ? t : 1 - t; }
};

__device__ Taps taps_of(std::int64_t i, std::int64_t factor, std::int64_t extent, bool linear) {
  if (!linear) return {i / factor, i / factor, 0};
  const double centre = (static_cast<double>(i) + 0.5) / static_cast<double>(factor) - 0.5;
  const double s = centre > 0 ? centre : 0;
  const auto a = static_cast<std::int64_t>(s);
  return {a, a + 1 < extent ? a + 1 : a, s - static_cast<double>(a)};
}

// The outputs [begin, end) that may read a cell along one axis.
struct Readers {
  std::int64_t begin, end;
};
__device__ Readers readers_of(std::int64_t cell, std::int64_t factor, std::int64_t outputs, bool linear) {
  const std::int64_t begin = (linear ? cell - 1 : cell) * factor, end = (linear ? cell + 2 : cell + 1) * factor;
  return {begin > 0 ? begin : 0, end < outputs ? end : outputs};
}

// The weight with which output `i` reads the cell along one axis.
__device__ double weight_of(std::int64_t i, std::int64_t cell, std::int64_t factor, std::int64_t extent, bool linear) {
  const Taps taps = taps_of(i, factor, extent, linear);
  return (taps.a == cell ? 1 - taps.t : 0.0) + (taps.b == cell ? taps.t : 0.0);
}

}  // namespace

template <class T>
void upsample_forward(const UpsampleDims& d, Layout layout, const T* x, T* y, cudaStream_t stream) {
  const SpatialExtents out = d.out();
  const Place from{d.C, d.in.cells(), layout}, to{d.C, out.cells(), layout};
  each(d.N * d.C * to.elems, stream, [=] __device__(std::int64_t index) {
    const Spot spot = to.spot(index);
    const Taps slab = taps_of(spot.i / (out.h * out.w), d.factor.d, d.in.d, d.linear);
    const Taps row = taps_of(spot.i / out.w % out.h, d.factor.h, d.in.h, d.linear);
    const Taps column = taps_of(spot.i % out.w, d.factor.w, d.in.w, d.linear);
    double sum = 0;
    for (int corner = 0; corner < 8; ++corner) {
      const int k = corner >> 2, j = corner >> 1 & 1, i = corner & 1;
      const double weight = slab.weight(k) * row.weight(j) * column.weight(i);
      if (weight == 0) continue;
      const std::int64_t cell = (slab.cell(k) * d.in.h + row.cell(j)) * d.in.w + column.cell(i);
      sum += weight * exact(x[from.at(spot.n, spot.c, cell)]);
    }
    put(y + index, sum);
  });
}

template <class T>
void upsample_backward(const UpsampleDims& d, Layout layout, const T* dy, T* dx, bool add, cudaStream_t stream) {
  const SpatialExtents out = d.out();
  const Place from{d.C, out.cells(), layout}, to{d.C, d.in.cells(), layout};
  each(d.N * d.C * to.elems, stream, [=] __device__(std::int64_t index) {
    const Spot spot = to.spot(index);
    const std::int64_t z = spot.i / (d.in.h * d.in.w), h = spot.i / d.in.w % d.in.h, w = spot.i % d.in.w;
    const Readers slabs = readers_of(z, d.factor.d, out.d, d.linear), rows = readers_of(h, d.factor.h, out.h, d.linear),
                  columns = readers_of(w, d.factor.w, out.w, d.linear);
    double sum = 0;
    for (std::int64_t o = slabs.begin; o < slabs.end; ++o)
      for (std::int64_t p = rows.begin; p < rows.end; ++p)
        for (std::int64_t q = columns.begin; q < columns.end; ++q) {
          const double weight = weight_of(o, z, d.factor.d, d.in.d, d.linear) *
                                weight_of(p, h, d.factor.h, d.in.h, d.linear) *
                                weight_of(q, w, d.factor.w, d.in.w, d.linear);
          if (weight != 0) sum += weight * exact(dy[from.at(spot.n, spot.c, (o * out.h + p) * out.w + q)]);
        }
    put(dx + index, sum, add);
  });
}

#define ECHELON_INSTANTIATE(T)                                                                \
  template void upsample_forward<T>(const UpsampleDims&, Layout, const T*, T*, cudaStream_t); \
  template void upsample_backward<T>(const UpsampleDims&, Layout, const T*, T*, bool, cudaStream_t);
ECHELON_CUDA_TYPES(ECHELON_INSTANTIATE)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
