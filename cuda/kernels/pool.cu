#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/place.hpp"
#include "cuda/kernels/pool.hpp"

namespace echelon::cuda {
namespace {

struct Range {
  std::int64_t begin, end;
};

// The image's cells under window p along one axis.
__device__ Range cells_of(std::int64_t p, std::int64_t stride, std::int64_t pad, std::int64_t size,
                          std::int64_t extent) {
  const std::int64_t begin = p * stride - pad;
  return {begin > 0 ? begin : 0, begin + size < extent ? begin + size : extent};
}

// The windows over cell h along one axis: p*stride - pad <= h < p*stride - pad + size.
__device__ Range windows_of(std::int64_t h, std::int64_t stride, std::int64_t pad, std::int64_t size,
                            std::int64_t windows) {
  const std::int64_t last = (h + pad) / stride;
  const std::int64_t before = h + pad - size;  // windows that begin at or below it end before h
  const std::int64_t first = before < 0 ? 0 : before / stride + 1;
  return {first, last + 1 < windows ? last + 1 : windows};
}

__device__ double divisor(const PoolDims& d, Range rows, Range columns) {
  if (d.mode == PoolMode::average_all) return static_cast<double>(d.R * d.S);
  return static_cast<double>((rows.end - rows.begin) * (columns.end - columns.begin));
}

template <class T>
__device__ T max_of(const PoolDims& d, const Plane<const T>& plane, Range rows, Range columns, std::int32_t* position) {
  std::int64_t best = rows.begin * d.W + columns.begin;
  Wide<T> most = wide(plane[best]);
  for (std::int64_t h = rows.begin; h < rows.end; ++h)
    for (std::int64_t w = columns.begin; w < columns.end; ++w)
      if (const Wide<T> value = wide(plane[h * d.W + w]); value > most || value != value) {  // NaN stays
        most = value;
        best = h * d.W + w;
      }
  if (position) *position = d.relu && !(most > 0) ? -1 : static_cast<std::int32_t>(best);
  return d.relu && most < 0 ? T(0) : plane[best];
}

template <class T>
__device__ double mean_of(const PoolDims& d, const Plane<const T>& plane, Range rows, Range columns) {
  double sum = 0;
  for (std::int64_t h = rows.begin; h < rows.end; ++h)
    for (std::int64_t w = columns.begin; w < columns.end; ++w) sum += exact(plane[h * d.W + w]);
  return sum / divisor(d, rows, columns);
}

}  // namespace

template <class T>
void pool_forward(const PoolDims& d, Layout layout, const T* x, T* y, std::int32_t* positions, cudaStream_t stream) {
  const std::int64_t Q = d.Q();
  const Place from{d.C, d.H * d.W, layout}, to{d.C, d.P() * Q, layout};
  each(d.N * d.C * to.elems, stream, [=] __device__(std::int64_t index) {
    const Spot spot = to.spot(index);
    const Range rows = cells_of(spot.i / Q, d.stride_h, d.pad_h, d.R, d.H);
    const Range columns = cells_of(spot.i % Q, d.stride_w, d.pad_w, d.S, d.W);
    const Plane<const T> plane(x, from, spot);
    if (d.mode == PoolMode::max)
      y[index] = max_of(d, plane, rows, columns, positions ? positions + index : nullptr);
    else
      put(y + index, mean_of(d, plane, rows, columns));
  });
}

template <class T>
void pool_backward(const PoolDims& d, Layout layout, const T* dy, const std::int32_t* positions, T* dx, bool add,
                   cudaStream_t stream) {
  const std::int64_t P = d.P();
  const std::int64_t Q = d.Q();
  const Place from{d.C, P * Q, layout}, to{d.C, d.H * d.W, layout};
  each(d.N * d.C * to.elems, stream, [=] __device__(std::int64_t index) {
    const Spot spot = to.spot(index);
    const Range over_h = windows_of(spot.i / d.W, d.stride_h, d.pad_h, d.R, P);
    const Range over_w = windows_of(spot.i % d.W, d.stride_w, d.pad_w, d.S, Q);
    double sum = 0;
    for (std::int64_t p = over_h.begin; p < over_h.end; ++p)
      for (std::int64_t q = over_w.begin; q < over_w.end; ++q) {
        const std::int64_t window = from.at(spot.n, spot.c, p * Q + q);
        const double gradient = exact(dy[window]);
        if (d.mode == PoolMode::max)
          sum += positions[window] == spot.i ? gradient : 0.0;
        else
          sum += gradient /
                 divisor(d, cells_of(p, d.stride_h, d.pad_h, d.R, d.H), cells_of(q, d.stride_w, d.pad_w, d.S, d.W));
      }
    put(dx + index, sum, add);
  });
}

#define ECHELON_INSTANTIATE(T)                                                                       \
  template void pool_forward<T>(const PoolDims&, Layout, const T*, T*, std::int32_t*, cudaStream_t); \
  template void pool_backward<T>(const PoolDims&, Layout, const T*, const std::int32_t*, T*, bool, cudaStream_t);
ECHELON_CUDA_TYPES(ECHELON_INSTANTIATE)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
