// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/direct_conv.hpp"
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/place.hpp"

namespace echelon::cuda {
namespace {

// Each block computes dw of one weight (k, c, r, s): the sum over the images and the output's elements.
template <class T>
__global__ void __launch_bounds__(kThreads) weight_kernel(ConvDims d, Place image, Place output, std::int64_t Q,
                                                          const T* x, const T* dy, Wide<T>* dw, bool add) {
  const std::int64_t P = output.elems / Q;
  const std::int64_t index = blockIdx.x;
  const std::int64_t in = d.C / d.groups;
  const std::int64_t s = index % d.S;
  const std::int64_t r = index / d.S % d.R;
  const std::int64_t k = index / (d.S * d.R * in);
  const std::int64_t c = k / (d.K / d.groups) * in + index / (d.S * d.R) % in;
  double part = 0;
  for (std::int64_t i = threadIdx.x; i < d.N * P * Q; i += kThreads) {
    const std::int64_t n = i / (P * Q);
    const std::int64_t h = i / Q % P * d.stride_h - d.pad_h + r * d.dil_h;
    const std::int64_t w = i % Q * d.stride_w - d.pad_w + s * d.dil_w;
    if (h < 0 || h >= d.H || w < 0 || w >= d.W) continue;
    part += exact(x[image.at(n, c, h * d.W + w)]) * exact(dy[output.at(n, k, i % (P * Q))]);
  }
  const double sum = block_reduce(part, Plus{});
  if (threadIdx.x == 0) put(dw + index, sum, add);
}

}  // namespace

template <class T>
void direct_conv_forward(const ConvDims& d, Layout layout, const T* x, const Wide<T>* w, T* y, cudaStream_t stream) {
  const std::int64_t Q = d.Q();
  const Place image{d.C, d.H * d.W, layout}, output{d.K, d.P() * Q, layout};
  each(d.N * d.K * output.elems, stream, [=] __device__(std::int64_t index) {
    const Spot spot = output.spot(index);
    const std::int64_t n = spot.n, k = spot.c, p = spot.i / Q, q = spot.i % Q;
    const std::int64_t in = d.C / d.groups;
    const std::int64_t first = k / (d.K / d.groups) * in;
    double sum = 0;
    for (std::int64_t c = 0; c < in; ++c)
      for (std::int64_t r = 0; r < d.R; ++r)
        for (std::int64_t s = 0; s < d.S; ++s) {
          const std::int64_t h = p * d.stride_h - d.pad_h + r * d.dil_h;
          const std::int64_t v = q * d.stride_w - d.pad_w + s * d.dil_w;
          if (h < 0 || h >= d.H || v < 0 || v >= d.W) continue;
          sum += exact(x[image.at(n, first + c, h * d.W + v)]) * exact(w[((k * in + c) * d.R + r) * d.S + s]);
        }
    put(y + index, sum);
  });
}

template <class T>
void direct_conv_backward_data(const ConvDims& d, Layout layout, const T* dy, const Wide<T>* w, T* dx, bool add,
                               cudaStream_t stream) {
  const std::int64_t P = d.P();
  const std::int64_t Q = d.Q();
  const Place image{d.C, d.H * d.W, layout}, output{d.K, P * Q, layout};
  each(d.N * d.C * image.elems, stream, [=] __device__(std::int64_t index) {
    const Spot spot = image.spot(index);
    const std::int64_t n = spot.n, c = spot.c, h = spot.i / d.W, v = spot.i % d.W;
    const std::int64_t in = d.C / d.groups;
    const std::int64_t out = d.K / d.groups;
    const std::int64_t first = c / in * out;
    double sum = 0;
    for (std::int64_t k = first; k < first + out; ++k)
      for (std::int64_t r = 0; r < d.R; ++r)
        for (std::int64_t s = 0; s < d.S; ++s) {
          const std::int64_t at_h = h + d.pad_h - r * d.dil_h;  // p * stride_h, if a window p puts row r here
          const std::int64_t at_w = v + d.pad_w - s * d.dil_w;
          if (at_h < 0 || at_w < 0 || at_h % d.stride_h != 0 || at_w % d.stride_w != 0) continue;
          const std::int64_t p = at_h / d.stride_h;
          const std::int64_t q = at_w / d.stride_w;
          if (p >= P || q >= Q) continue;
          sum += exact(dy[output.at(n, k, p * Q + q)]) * exact(w[((k * in + c % in) * d.R + r) * d.S + s]);
        }
    put(dx + index, sum, add);
  });
}

template <class T>
void direct_conv_backward_weights(const ConvDims& d, Layout layout, const T* x, const T* dy, Wide<T>* dw, bool add,
                                  cudaStream_t stream) {
  const Place image{d.C, d.H * d.W, layout}, output{d.K, d.P() * d.Q(), layout};
  const auto weights = static_cast<unsigned>(d.K * (d.C / d.groups) * d.R * d.S);
  launch(weight_kernel<T>, weights, kThreads, stream, d, image, output, d.Q(), x, dy, dw, add);
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
