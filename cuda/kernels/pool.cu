#include "cuda/kernels/each.cuh"
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
__device__ T max_of(const PoolDims& d, const T* plane, Range rows, Range columns, std::int32_t* position) {
  std::int64_t best = rows.begin * d.W + columns.begin;
  for (std::int64_t h = rows.begin; h < rows.end; ++h)
    for (std::int64_t w = columns.begin; w < columns.end; ++w)
      if (const T value = plane[h * d.W + w]; value > plane[best] || value != value) best = h * d.W + w;  // NaN stays
  if (position) *position = static_cast<std::int32_t>(best);
  return plane[best];
}

template <class T>
__device__ T mean_of(const PoolDims& d, const T* plane, Range rows, Range columns) {
  double sum = 0;
  for (std::int64_t h = rows.begin; h < rows.end; ++h)
    for (std::int64_t w = columns.begin; w < columns.end; ++w) sum += static_cast<double>(plane[h * d.W + w]);
  return static_cast<T>(sum / divisor(d, rows, columns));
}

}  // namespace

template <class T>
void pool_forward(const PoolDims& d, const T* x, T* y, std::int32_t* positions, cudaStream_t stream) {
  const std::int64_t P = d.P();
  const std::int64_t Q = d.Q();
  each(d.N * d.C * P * Q, stream, [=] __device__(std::int64_t index) {
    const Range rows = cells_of(index / Q % P, d.stride_h, d.pad_h, d.R, d.H);
    const Range columns = cells_of(index % Q, d.stride_w, d.pad_w, d.S, d.W);
    const T* plane = x + index / (P * Q) * d.H * d.W;
    y[index] = d.mode == PoolMode::max ? max_of(d, plane, rows, columns, positions ? positions + index : nullptr)
                                       : mean_of(d, plane, rows, columns);
  });
}

template <class T>
void pool_backward(const PoolDims& d, const T* dy, const std::int32_t* positions, T* dx, bool add,
                   cudaStream_t stream) {
  const std::int64_t P = d.P();
  const std::int64_t Q = d.Q();
  each(d.N * d.C * d.H * d.W, stream, [=] __device__(std::int64_t index) {
    const std::int64_t w = index % d.W;
    const std::int64_t h = index / d.W % d.H;
    const std::int64_t plane = index / (d.H * d.W);
    const Range over_h = windows_of(h, d.stride_h, d.pad_h, d.R, P);
    const Range over_w = windows_of(w, d.stride_w, d.pad_w, d.S, Q);
    double sum = 0;
    for (std::int64_t p = over_h.begin; p < over_h.end; ++p)
      for (std::int64_t q = over_w.begin; q < over_w.end; ++q) {
        const std::int64_t window = (plane * P + p) * Q + q;
        const auto gradient = static_cast<double>(dy[window]);
        if (d.mode == PoolMode::max)
          sum += positions[window] == h * d.W + w ? gradient : 0.0;
        else
          sum += gradient /
                 divisor(d, cells_of(p, d.stride_h, d.pad_h, d.R, d.H), cells_of(q, d.stride_w, d.pad_w, d.S, d.W));
      }
    dx[index] = (add ? dx[index] : T(0)) + static_cast<T>(sum);
  });
}

#define ECHELON_INSTANTIATE(T)                                                               \
  template void pool_forward<T>(const PoolDims&, const T*, T*, std::int32_t*, cudaStream_t); \
  template void pool_backward<T>(const PoolDims&, const T*, const std::int32_t*, T*, bool, cudaStream_t);
ECHELON_INSTANTIATE(float)
ECHELON_INSTANTIATE(double)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
