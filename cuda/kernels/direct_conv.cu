// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/direct_conv.hpp"
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/place.hpp"

namespace echelon::cuda {
namespace {

// The position of weight `index` in its kernel, or of a window among all windows.
__device__ AxisSizes position_of(std::int64_t index, const AxisSizes& extents) {
  AxisSizes at;
  at.w = index % extents.w;
  at.h = index / extents.w % extents.h;
  at.d = index / (extents.w * extents.h) % extents.d;
  return at;
}

// The cell that `tap` of the kernel meets in window `at`; -1 in the padding.
__device__ std::int64_t cell_of(const ConvDims& d, const AxisSizes& at, const AxisSizes& tap) {
  const std::int64_t z = at.d * d.stride.d - d.pad.d + tap.d * d.dil.d;
  const std::int64_t h = at.h * d.stride.h - d.pad.h + tap.h * d.dil.h;
  const std::int64_t w = at.w * d.stride.w - d.pad.w + tap.w * d.dil.w;
  const bool inside = z >= 0 && z < d.in.d && h >= 0 && h < d.in.h && w >= 0 && w < d.in.w;
  return inside ? (z * d.in.h + h) * d.in.w + w : -1;
}

// The window along one axis whose tap meets cell `cell`; -1: none does.
__device__ std::int64_t window_of(std::int64_t cell, std::int64_t tap, std::int64_t pad, std::int64_t dilation,
                                  std::int64_t stride, std::int64_t windows) {
  const std::int64_t begin = cell + pad - tap * dilation;
  return begin < 0 || begin % stride != 0 || begin / stride >= windows ? -1 : begin / stride;
}

__device__ std::int64_t product(const AxisSizes& extents) { return extents.d * extents.h * extents.w; }

// Each block computes dw of one weight (k, c, tap): the sum over the images and the output's elements.
template <class T>
__global__ void __launch_bounds__(kThreads) weight_kernel(ConvDims d, Place image, Place output, AxisSizes windows,
                                                          const T* x, const T* dy, Wide<T>* dw, bool add) {
  const std::int64_t index = blockIdx.x, taps = product(d.kernel), in = d.C / d.groups;
  const std::int64_t k = index / (taps * in);
  const std::int64_t c = k / (d.K / d.groups) * in + index / taps % in;
  const AxisSizes tap = position_of(index % taps, d.kernel);
  double part = 0;
  for (std::int64_t i = threadIdx.x; i < d.N * output.elems; i += kThreads) {
    const std::int64_t n = i / output.elems, at = i % output.elems;
    const std::int64_t cell = cell_of(d, position_of(at, windows), tap);
    if (cell >= 0) part += exact(x[image.at(n, c, cell)]) * exact(dy[output.at(n, k, at)]);
  }
  const double sum = block_reduce(part, Plus{});
  if (threadIdx.x == 0) put(dw + index, sum, add);
}

}  // namespace

template <class T>
void direct_conv_forward(const ConvDims& d, Layout layout, const T* x, const Wide<T>* w, T* y, cudaStream_t stream) {
  const SpatialExtents windows = d.out();
  const Place image{d.C, d.in.cells(), layout}, output{d.K, windows.cells(), layout};
  each(d.N * d.K * output.elems, stream, [=] __device__(std::int64_t index) {
    const Spot spot = output.spot(index);
    const AxisSizes at = position_of(spot.i, windows);
    const std::int64_t taps = product(d.kernel), in = d.C / d.groups;
    const std::int64_t first = spot.c / (d.K / d.groups) * in;
    double sum = 0;
    for (std::int64_t c = 0; c < in; ++c)
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t cell = cell_of(d, at, position_of(tap, d.kernel));
        if (cell >= 0) sum += exact(x[image.at(spot.n, first + c, cell)]) * exact(w[(spot.c * in + c) * taps + tap]);
      }
    put(y + index, sum);
  });
}

template <class T>
void direct_conv_backward_data(const ConvDims& d, Layout layout, const T* dy, const Wide<T>* w, T* dx, bool add,
                               cudaStream_t stream) {
  const SpatialExtents windows = d.out();
  const Place image{d.C, d.in.cells(), layout}, output{d.K, windows.cells(), layout};
  each(d.N * d.C * image.elems, stream, [=] __device__(std::int64_t index) {
    const Spot spot = image.spot(index);
    const AxisSizes cell = position_of(spot.i, d.in);
    const std::int64_t taps = product(d.kernel), in = d.C / d.groups, out = d.K / d.groups;
    const std::int64_t first = spot.c / in * out;
    double sum = 0;
    for (std::int64_t k = first; k < first + out; ++k)
      for (std::int64_t t = 0; t < taps; ++t) {
        const AxisSizes tap = position_of(t, d.kernel);
        const std::int64_t o = window_of(cell.d, tap.d, d.pad.d, d.dil.d, d.stride.d, windows.d);
        const std::int64_t p = window_of(cell.h, tap.h, d.pad.h, d.dil.h, d.stride.h, windows.h);
        const std::int64_t q = window_of(cell.w, tap.w, d.pad.w, d.dil.w, d.stride.w, windows.w);
        if (o < 0 || p < 0 || q < 0) continue;
        const std::int64_t from = output.at(spot.n, k, (o * windows.h + p) * windows.w + q);
        sum += exact(dy[from]) * exact(w[(k * in + spot.c % in) * taps + t]);
      }
    put(dx + index, sum, add);
  });
}

template <class T>
void direct_conv_backward_weights(const ConvDims& d, Layout layout, const T* x, const T* dy, Wide<T>* dw, bool add,
                                  cudaStream_t stream) {
  const SpatialExtents windows = d.out();
  const Place image{d.C, d.in.cells(), layout}, output{d.K, windows.cells(), layout};
  launch(weight_kernel<T>, static_cast<unsigned>(d.weights()), kThreads, stream, d, image, output,
         static_cast<AxisSizes>(windows), x, dy, dw, add);
}

#define ECHELON_INSTANTIATE(T)                                                                               \
  template void direct_conv_forward<T>(const ConvDims&, Layout, const T*, const Wide<T>*, T*, cudaStream_t); \
  template void direct_conv_backward_data<T>(const ConvDims&, Layout, const T*, const Wide<T>*, T*, bool,    \
                                             cudaStream_t);                                                  \
  template void direct_conv_backward_weights<T>(const ConvDims&, Layout, const T*, const T*, Wide<T>*, bool, \
                                                cudaStream_t);
ECHELON_CUDA_TYPES(ECHELON_INSTANTIATE)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
