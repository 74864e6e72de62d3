// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/elementwise.hpp"

#include "cuda/kernels/channel_sums.cuh"
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/packs.cuh"
#include "cuda/kernels/place.hpp"

namespace echelon::cuda {
namespace {

// The probability that a standard normal variable is below x.
template <class W>
__device__ W normal_share(W x) {
  return W(0.5) * ::erfc(-x * W(0.70710678118654752440));
}

template <class T>
struct Bias {
  const Wide<T>* b;
  struct Own {
    Wide<T> bias;
    __device__ Wide<T> operator()(const Wide<T>* y) const { return y[0] + bias; }
  };
  __device__ Own of(std::int64_t k) const { return {b[k]}; }
};

template <class T>
struct OwnValues {
  struct Own {
    __device__ void operator()(std::int64_t, const Wide<T>* values, PackSum<T>* sums) const { sums[0] += values[0]; }
  };
  __device__ Own of(std::int64_t) const { return {}; }
};

}  // namespace

template <class T>
void activation_forward(const ActivationDims& d, const T* x, T* y, std::int64_t n, cudaStream_t stream) {
  using W = Wide<T>;
  const auto a = static_cast<W>(d.a);
  switch (d.function) {
    case Activation::relu:
      return map(n, inputs(x), y, false, stream, [=] __device__(const W* at) { return at[0] < W(0) ? W(0) : at[0]; });
    case Activation::tanh:
      return map(n, inputs(x), y, false, stream, [=] __device__(const W* at) { return W(::tanh(at[0])); });
    case Activation::sigmoid:
      return map(n, inputs(x), y, false, stream, [=] __device__(const W* at) { return W(1) / (W(1) + ::exp(-at[0])); });
    case Activation::gelu:
      return map(n, inputs(x), y, false, stream, [=] __device__(const W* at) { return at[0] * normal_share(at[0]); });
    case Activation::leaky_relu:
      return map(n, inputs(x), y, false, stream,
                 [=] __device__(const W* at) { return at[0] < W(0) ? a * at[0] : at[0]; });
    case Activation::elu:
      return map(n, inputs(x), y, false, stream,
                 [=] __device__(const W* at) { return at[0] < W(0) ? a * ::expm1(at[0]) : at[0]; });
    case Activation::softplus:
      return map(n, inputs(x), y, false, stream, [=] __device__(const W* at) {
        return (at[0] > W(0) ? at[0] : W(0) * at[0]) + ::log1p(::exp(at[0] > W(0) ? -at[0] : at[0]));
      });
    case Activation::scale:
      return map(n, inputs(x), y, false, stream, [=] __device__(const W* at) { return a * at[0]; });
  }
}

template <class T>
void activation_backward(const ActivationDims& d, const T* y, const T* dy, T* dx, std::int64_t n, bool add,
                         cudaStream_t stream) {
  using W = Wide<T>;
  const auto a = static_cast<W>(d.a);
  switch (d.function) {
    case Activation::relu:
      return map(n, inputs(y, dy), dx, add, stream,
                 [=] __device__(const W* at) { return at[0] > W(0) ? at[1] : W(0) * at[1]; });
    case Activation::tanh:
      return map(n, inputs(y, dy), dx, add, stream,
                 [=] __device__(const W* at) { return (W(1) - at[0] * at[0]) * at[1]; });
    case Activation::sigmoid:
      return map(n, inputs(y, dy), dx, add, stream,
                 [=] __device__(const W* at) { return at[0] * (W(1) - at[0]) * at[1]; });
    case Activation::gelu:
      return map(n, inputs(y, dy), dx, add, stream, [=] __device__(const W* at) {
        const W x = at[0];  // the input
        const W slope = normal_share(x) + x * W(0.39894228040143267794) * ::exp(-x * x / W(2));
        return slope * at[1];
      });
    case Activation::leaky_relu:
      return map(n, inputs(y, dy), dx, add, stream,
                 [=] __device__(const W* at) { return at[0] > W(0) ? at[1] : a * at[1]; });
    case Activation::elu:
      return map(n, inputs(y, dy), dx, add, stream,
                 [=] __device__(const W* at) { return at[0] > W(0) ? at[1] : (at[0] + a) * at[1]; });
    case Activation::softplus:
      return map(n, inputs(y, dy), dx, add, stream, [=] __device__(const W* at) { return -::expm1(-at[0]) * at[1]; });
    case Activation::scale:
      return map(n, inputs(y, dy), dx, add, stream, [=] __device__(const W* at) { return a * at[1]; });
  }
}

template <class T>
void add_tensors(const T* a, const T* b, T* y, std::int64_t n, bool relu, cudaStream_t stream) {
  using W = Wide<T>;
  map(n, inputs(a, b), y, false, stream, [=] __device__(const W* at) {
    const W sum = at[0] + at[1];
    return relu && sum < W(0) ? W(0) : sum;
  });
}

template <class T>
void add_masked(const T* mask, const T* a, const T* b, T* y, std::int64_t n, cudaStream_t stream) {
  using W = Wide<T>;
  map(n, inputs(mask, a, b), y, false, stream, [=] __device__(const W* at) {
    const W sum = at[1] + at[2];
    return at[0] > W(0) ? sum : W(0) * sum;
  });
}

template <class T>
void add_bias(T* y, const Wide<T>* b, const ChannelExtents& e, cudaStream_t stream) {
  map_channels(e, inputs(static_cast<const T*>(y)), y, false, stream, Bias<T>{b});
}

template <class T>
void bias_gradient(const T* dy, Wide<T>* db, const ChannelExtents& e, bool add, void* scratch, cudaStream_t stream) {
  channel_sums<1>(e, inputs(dy), scratch, stream, OwnValues<T>{},
                  [=] __device__(std::int64_t k, const double* sums) { put(db + k, sums[0], add); });
}

template <class X, class Y>
void reorder(const X* x, Layout from, Y* y, Layout to, const Shape& shape, bool add, cudaStream_t stream) {
  const bool image = shape.rank() >= 4;
  const std::int64_t C = image ? shape[1] : 1;
  const std::int64_t elems = image ? shape.elems() / (shape[0] * C) : shape.elems();
  const Place src{C, elems, image ? from : Layout::plain};
  const Place dst{C, elems, image ? to : Layout::plain};
  if (dst.layout == Layout::plain || dst.layout == Layout::channels_last)
    return each(shape.elems(), stream, [=] __device__(std::int64_t index) {
      const Spot spot = dst.spot(index);
      put(y + index, wide(x[src.at(spot.n, spot.c, spot.i)]), add);
    });
  const std::int64_t block = dst.layout == Layout::blocked8 ? 8 : 16;
  const std::int64_t stored = (C + block - 1) / block * block;  // channels that are written, padding included
  each(shape[0] * stored * elems, stream, [=] __device__(std::int64_t index) {
    const std::int64_t n = index / (stored * elems);
    const std::int64_t c = index / elems % stored;
    const std::int64_t i = index % elems;
    put(y + dst.at(n, c, i), c < C ? wide(x[src.at(n, c, i)]) : Wide<X>(0), add);
  });
}

#define ECHELON_INSTANTIATE(T)                                                                            \
  template void activation_forward<T>(const ActivationDims&, const T*, T*, std::int64_t, cudaStream_t);   \
  template void activation_backward<T>(const ActivationDims&, const T*, const T*, T*, std::int64_t, bool, \
                                       cudaStream_t);                                                     \
  template void add_tensors<T>(const T*, const T*, T*, std::int64_t, bool, cudaStream_t);                 \
  template void add_masked<T>(const T*, const T*, const T*, T*, std::int64_t, cudaStream_t);              \
  template void add_bias<T>(T*, const Wide<T>*, const ChannelExtents&, cudaStream_t);                     \
  template void bias_gradient<T>(const T*, Wide<T>*, const ChannelExtents&, bool, void*, cudaStream_t);   \
  template void reorder<T, T>(const T*, Layout, T*, Layout, const Shape&, bool, cudaStream_t);
ECHELON_CUDA_TYPES(ECHELON_INSTANTIATE)
#undef ECHELON_INSTANTIATE

#define ECHELON_INSTANTIATE(T)                                                                         \
  template void reorder<float, T>(const float*, Layout, T*, Layout, const Shape&, bool, cudaStream_t); \
  template void reorder<T, float>(const T*, Layout, float*, Layout, const Shape&, bool, cudaStream_t);
ECHELON_INSTANTIATE(Half)
ECHELON_INSTANTIATE(BHalf)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
