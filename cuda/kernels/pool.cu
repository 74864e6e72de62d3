// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/packs.cuh"
#include "cuda/kernels/place.hpp"
#include "cuda/kernels/pool.hpp"

namespace echelon::cuda {
namespace {

struct Range {
  std::int64_t begin, end;
};

// The cells of the image in window p along one axis.
__device__ Range cells_of(std::int64_t p, std::int64_t stride, std::int64_t pad, std::int64_t size,
                          std::int64_t extent) {
  const std::int64_t begin = p * stride - pad;
  return {begin > 0 ? begin : 0, begin + size < extent ? begin + size : extent};
}

// The windows that contain cell h along one axis: p*stride - pad <= h < p*stride - pad + size.
__device__ Range windows_of(std::int64_t h, std::int64_t stride, std::int64_t pad, std::int64_t size,
                            std::int64_t windows) {
  const std::int64_t last = (h + pad) / stride;
  const std::int64_t before = h + pad - size;  // windows that begin at or below it end before h
  const std::int64_t first = before < 0 ? 0 : before / stride + 1;
  return {first, last + 1 < windows ? last + 1 : windows};
}

// The cells of one window, or the windows of one cell.
struct Ranges {
  Range slabs, rows, columns;
  __device__ std::int64_t count() const {
    return (slabs.end - slabs.begin) * (rows.end - rows.begin) * (columns.end - columns.begin);
  }
};

// The cells of the image in window (o, p, q).
__device__ Ranges cells_of(const PoolDims& d, std::int64_t o, std::int64_t p, std::int64_t q) {
  return {cells_of(o, d.stride.d, d.pad.d, d.kernel.d, d.in.d), cells_of(p, d.stride.h, d.pad.h, d.kernel.h, d.in.h),
          cells_of(q, d.stride.w, d.pad.w, d.kernel.w, d.in.w)};
}

__device__ double divisor(const PoolDims& d, const Ranges& cells) {
  if (d.mode == PoolMode::average_all) return static_cast<double>(d.kernel.d * d.kernel.h * d.kernel.w);
  return static_cast<double>(cells.count());
}

// The type in which the few cells or windows of one position are summed.
template <class T>
using PlaceSum = std::conditional_t<kHalf<T>, float, double>;

// Calls f.at<K>(n, c, h, w) for every position of (N, C, H, W), with K channels at once; rows h of a volume count
// through its slabs. Threads cover a row's
// positions (x) and several rows (y), so that a position costs one 32-bit division.
template <int K, class F>
__global__ void __launch_bounds__(kThreads)
    positions_kernel(std::int64_t N, std::int64_t C, std::int64_t H, std::int64_t W, bool channels_last, F f) {
  const std::int64_t planes = channels_last ? 1 : C, rows = N * planes * H;
  const auto packs = static_cast<unsigned>(channels_last ? C / K : 1), items = static_cast<unsigned>(W) * packs;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; row < rows; row += step) {
    const std::int64_t plane = row / H, n = plane / planes, h = row - plane * H;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < items; i += gridDim.x * blockDim.x) {
      const unsigned w = i / packs, pack = i - w * packs;
      f.template at<K>(n, plane - n * planes + static_cast<std::int64_t>(pack) * K, h, static_cast<std::int64_t>(w));
    }
  }
}

template <int K, class F>
void launch_positions(std::int64_t N, std::int64_t C, std::int64_t H, std::int64_t W, Layout layout,
                      cudaStream_t stream, F f) {
  const bool last = layout == Layout::channels_last;
  const std::int64_t items = W * (last ? C / K : 1), rows = N * H * (last ? 1 : C);
  if (items * rows == 0) return;
  const dim3 block = plane_block(items);
  const dim3 grid(grid_blocks(items, block.x, 1 << 16), grid_blocks(rows, block.y, 1 << 15));
  launch(positions_kernel<K, F>, grid, block, stream, N, C, H, W, last, f);
}

// Uses packs of channels if they are contiguous and `whole`.
template <class T, class F>
void each_position(bool whole, std::int64_t N, std::int64_t C, std::int64_t H, std::int64_t W, Layout layout,
                   cudaStream_t stream, F f) {
  if (whole && layout == Layout::channels_last && C % kPack<T> == 0)
    launch_positions<kPack<T>>(N, C, H, W, layout, stream, f);
  else
    launch_positions<1>(N, C, H, W, layout, stream, f);
}

// The positions of K channels, loaded 16 bytes at once.
template <int K>
inline constexpr int kGroup = K % 4 == 0 ? 4 : 1;
template <int K>
__device__ Pack<K, std::int32_t> fetch_positions(const std::int32_t* from) {
  Pack<K, std::int32_t> pack;
  for (int k = 0; k < K; k += kGroup<K>) {
    const auto group = fetch<kGroup<K>>(from + k, true);
    for (int i = 0; i < kGroup<K>; ++i) pack.at[k + i] = group.at[i];
  }
  return pack;
}
template <int K>
__device__ void store_positions(std::int32_t* to, const Pack<K, std::int32_t>& pack) {
  for (int k = 0; k < K; k += kGroup<K>) {
    Pack<kGroup<K>, std::int32_t> group;
    for (int i = 0; i < kGroup<K>; ++i) group.at[i] = pack.at[k + i];
    store(to + k, true, group);
  }
}

template <class T>
struct Forward {
  PoolDims d;
  SpatialExtents y_extents;
  Place from, to;
  const T* x;
  T* y;
  std::int32_t* positions;

  template <int K>
  __device__ void at(std::int64_t n, std::int64_t c, std::int64_t row, std::int64_t q) const {
    const std::int64_t o = y_extents.d == 1 ? 0 : row / y_extents.h;
    const Ranges cells = cells_of(d, o, row - o * y_extents.h, q);
    const T* plane = x + from.at(n, c, 0);
    const std::int64_t step = from.layout == Layout::channels_last ? from.C : 1;
    const std::int64_t window = to.at(n, c, row * y_extents.w + q);
    if (d.mode == PoolMode::max)
      maximum<K>(plane, step, cells, window);
    else
      mean<K>(plane, step, cells, window);
  }

 private:
  __device__ std::int32_t cell_at(std::int64_t z, std::int64_t h, std::int64_t w) const {
    return static_cast<std::int32_t>((z * d.in.h + h) * d.in.w + w);
  }
  template <int K>
  __device__ void maximum(const T* plane, std::int64_t step, const Ranges& cells, std::int64_t window) const {
    auto cell = cell_at(cells.slabs.begin, cells.rows.begin, cells.columns.begin);
    Pack<K, T> most = fetch<K>(plane + cell * step, true);
    Pack<K, std::int32_t> best;
    for (int k = 0; k < K; ++k) best.at[k] = cell;
    for (std::int64_t z = cells.slabs.begin; z < cells.slabs.end; ++z)
      for (std::int64_t h = cells.rows.begin; h < cells.rows.end; ++h)
        for (std::int64_t w = cells.columns.begin; w < cells.columns.end; ++w) {
          cell = cell_at(z, h, w);
          const Pack<K, T> values = fetch<K>(plane + cell * step, true);
          for (int k = 0; k < K; ++k)
            if (const Wide<T> value = wide(values.at[k]); value > wide(most.at[k]) || value != value) {  // NaN stays
              most.at[k] = values.at[k];
              best.at[k] = cell;
            }
        }
    for (int k = 0; k < K; ++k) {
      if (d.relu && !(wide(most.at[k]) > 0)) best.at[k] = -1;
      if (d.relu && wide(most.at[k]) < 0) most.at[k] = T(0);
    }
    store(y + window, true, most);
    if (positions) store_positions(positions + window, best);
  }

  template <int K>
  __device__ void mean(const T* plane, std::int64_t step, const Ranges& cells, std::int64_t window) const {
    PlaceSum<T> sums[K] = {};
    for (std::int64_t z = cells.slabs.begin; z < cells.slabs.end; ++z)
      for (std::int64_t h = cells.rows.begin; h < cells.rows.end; ++h)
        for (std::int64_t w = cells.columns.begin; w < cells.columns.end; ++w) {
          const Pack<K, T> values = fetch<K>(plane + cell_at(z, h, w) * step, true);
          for (int k = 0; k < K; ++k) sums[k] += wide(values.at[k]);
        }
    const auto divided = static_cast<PlaceSum<T>>(divisor(d, cells));
    Pack<K, T> means;
    for (int k = 0; k < K; ++k) put(means.at + k, sums[k] / divided);
    store(y + window, true, means);
  }
};

template <class T>
struct Backward {
  PoolDims d;
  SpatialExtents y_extents;
  Place from, to;
  const T* dy;
  const std::int32_t* positions;
  T* dx;
  bool add;

  template <int K>
  __device__ void at(std::int64_t n, std::int64_t c, std::int64_t row, std::int64_t w) const {
    const std::int64_t z = d.in.d == 1 ? 0 : row / d.in.h, h = row - z * d.in.h;
    const Range over_d = windows_of(z, d.stride.d, d.pad.d, d.kernel.d, y_extents.d),
                over_h = windows_of(h, d.stride.h, d.pad.h, d.kernel.h, y_extents.h),
                over_w = windows_of(w, d.stride.w, d.pad.w, d.kernel.w, y_extents.w);
    const auto cell = static_cast<std::int32_t>(row * d.in.w + w);
    PlaceSum<T> sums[K] = {};
    for (std::int64_t o = over_d.begin; o < over_d.end; ++o)
      for (std::int64_t p = over_h.begin; p < over_h.end; ++p)
        for (std::int64_t q = over_w.begin; q < over_w.end; ++q) {
          const std::int64_t window = from.at(n, c, (o * y_extents.h + p) * y_extents.w + q);
          const Pack<K, T> gradients = fetch<K>(dy + window, true);
          if (d.mode == PoolMode::max) {
            const Pack<K, std::int32_t> best = fetch_positions<K>(positions + window);
            for (int k = 0; k < K; ++k) sums[k] += best.at[k] == cell ? wide(gradients.at[k]) : Wide<T>(0);
          } else {
            const auto cells = static_cast<PlaceSum<T>>(divisor(d, cells_of(d, o, p, q)));
            for (int k = 0; k < K; ++k) sums[k] += wide(gradients.at[k]) / cells;
          }
        }
    const std::int64_t index = to.at(n, c, row * d.in.w + w);
    Pack<K, T> out = {};
    if (add) out = fetch<K>(static_cast<const T*>(dx + index), true);
    for (int k = 0; k < K; ++k) put(out.at + k, sums[k], add);
    store(dx + index, true, out);
  }
};

}  // namespace

template <class T>
void pool_forward(const PoolDims& d, Layout layout, const T* x, T* y, std::int32_t* positions, cudaStream_t stream) {
  const SpatialExtents out = d.out();
  const Place from{d.C, d.in.cells(), layout}, to{d.C, out.cells(), layout};
  each_position<T>(whole(x) && whole(y) && whole(positions), d.N, d.C, out.d * out.h, out.w, layout, stream,
                   Forward<T>{d, out, from, to, x, y, positions});
}

template <class T>
void pool_backward(const PoolDims& d, Layout layout, const T* dy, const std::int32_t* positions, T* dx, bool add,
                   cudaStream_t stream) {
  const SpatialExtents out = d.out();
  const Place from{d.C, out.cells(), layout}, to{d.C, d.in.cells(), layout};
  each_position<T>(whole(dy) && whole(positions) && whole(dx), d.N, d.C, d.in.d * d.in.h, d.in.w, layout, stream,
                   Backward<T>{d, out, from, to, dy, positions, dx, add});
}

#define ECHELON_INSTANTIATE(T)                                                                       \
  template void pool_forward<T>(const PoolDims&, Layout, const T*, T*, std::int32_t*, cudaStream_t); \
  template void pool_backward<T>(const PoolDims&, Layout, const T*, const std::int32_t*, T*, bool, cudaStream_t);
ECHELON_CUDA_TYPES(ECHELON_INSTANTIATE)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
