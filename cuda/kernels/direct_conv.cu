#include "cuda/kernels/direct_conv.hpp"
#include "cuda/kernels/each.cuh"

namespace echelon::cuda {
namespace {

// dw of one weight (k, c, r, s) a block: the sum over the images and the output's elements.
template <class T>
__global__ void __launch_bounds__(kThreads)
    weight_kernel(ConvDims d, std::int64_t P, std::int64_t Q, const T* x, const T* dy, T* dw, bool add) {
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
    part += static_cast<double>(x[((n * d.C + c) * d.H + h) * d.W + w]) *
            static_cast<double>(dy[(n * d.K + k) * P * Q + i % (P * Q)]);
  }
  const double sum = block_reduce(part, Plus{});
  if (threadIdx.x == 0) dw[index] = (add ? dw[index] : T(0)) + static_cast<T>(sum);
}

}  // namespace

template <class T>
void direct_conv_forward(const ConvDims& d, const T* x, const T* w, T* y, cudaStream_t stream) {
  const std::int64_t P = d.P();
  const std::int64_t Q = d.Q();
  each(d.N * d.K * P * Q, stream, [=] __device__(std::int64_t index) {
    const std::int64_t q = index % Q;
    const std::int64_t p = index / Q % P;
    const std::int64_t k = index / (P * Q) % d.K;
    const std::int64_t n = index / (P * Q * d.K);
    const std::int64_t in = d.C / d.groups;
    const std::int64_t first = k / (d.K / d.groups) * in;
    double sum = 0;
    for (std::int64_t c = 0; c < in; ++c)
      for (std::int64_t r = 0; r < d.R; ++r)
        for (std::int64_t s = 0; s < d.S; ++s) {
          const std::int64_t h = p * d.stride_h - d.pad_h + r * d.dil_h;
          const std::int64_t v = q * d.stride_w - d.pad_w + s * d.dil_w;
          if (h < 0 || h >= d.H || v < 0 || v >= d.W) continue;
          sum += static_cast<double>(x[((n * d.C + first + c) * d.H + h) * d.W + v]) *
                 static_cast<double>(w[((k * in + c) * d.R + r) * d.S + s]);
        }
    y[index] = static_cast<T>(sum);
  });
}

template <class T>
void direct_conv_backward_data(const ConvDims& d, const T* dy, const T* w, T* dx, bool add, cudaStream_t stream) {
  const std::int64_t P = d.P();
  const std::int64_t Q = d.Q();
  each(d.N * d.C * d.H * d.W, stream, [=] __device__(std::int64_t index) {
    const std::int64_t v = index % d.W;
    const std::int64_t h = index / d.W % d.H;
    const std::int64_t c = index / (d.W * d.H) % d.C;
    const std::int64_t n = index / (d.W * d.H * d.C);
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
          sum += static_cast<double>(dy[((n * d.K + k) * P + p) * Q + q]) *
                 static_cast<double>(w[((k * in + c % in) * d.R + r) * d.S + s]);
        }
    dx[index] = (add ? dx[index] : T(0)) + static_cast<T>(sum);
  });
}

template <class T>
void direct_conv_backward_weights(const ConvDims& d, const T* x, const T* dy, T* dw, bool add, cudaStream_t stream) {
  const auto weights = static_cast<unsigned>(d.K * (d.C / d.groups) * d.R * d.S);
  weight_kernel<<<weights, kThreads, 0, stream>>>(d, d.P(), d.Q(), x, dy, dw, add);
}

#define ECHELON_INSTANTIATE(T)                                                                             \
  template void direct_conv_forward<T>(const ConvDims&, const T*, const T*, T*, cudaStream_t);             \
  template void direct_conv_backward_data<T>(const ConvDims&, const T*, const T*, T*, bool, cudaStream_t); \
  template void direct_conv_backward_weights<T>(const ConvDims&, const T*, const T*, T*, bool, cudaStream_t);
ECHELON_INSTANTIATE(float)
ECHELON_INSTANTIATE(double)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
