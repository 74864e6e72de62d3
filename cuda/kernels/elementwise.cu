#include "cuda/kernels/elementwise.hpp"

#include "cuda/kernels/channel_sums.cuh"
#include "cuda/kernels/each.cuh"

namespace echelon::cuda {
namespace {

// The share of a standard normal below x.
template <class T>
__device__ T normal_share(T x) {
  return T(0.5) * ::erfc(-x * T(0.70710678118654752440));
}

}  // namespace

template <class T>
void activation_forward(Activation function, const T* x, T* y, std::int64_t n, cudaStream_t stream) {
  switch (function) {
    case Activation::relu: return each(n, stream, [=] __device__(std::int64_t i) { y[i] = x[i] < T(0) ? T(0) : x[i]; });
    case Activation::tanh: return each(n, stream, [=] __device__(std::int64_t i) { y[i] = ::tanh(x[i]); });
    case Activation::sigmoid:
      return each(n, stream, [=] __device__(std::int64_t i) { y[i] = T(1) / (T(1) + ::exp(-x[i])); });
    case Activation::gelu: return each(n, stream, [=] __device__(std::int64_t i) { y[i] = x[i] * normal_share(x[i]); });
  }
}

template <class T>
void activation_backward(Activation function, const T* y, const T* dy, T* dx, std::int64_t n, bool add,
                         cudaStream_t stream) {
  if (function == Activation::gelu)
    return each(n, stream, [=] __device__(std::int64_t i) {
      const T x = y[i];  // the input
      const T slope = normal_share(x) + x * T(0.39894228040143267794) * ::exp(-x * x / T(2));
      dx[i] = (add ? dx[i] : T(0)) + slope * dy[i];
    });
  each(n, stream, [=] __device__(std::int64_t i) {
    const T slope = function == Activation::relu   ? (y[i] > T(0) ? T(1) : T(0))
                    : function == Activation::tanh ? T(1) - y[i] * y[i]
                                                   : y[i] * (T(1) - y[i]);
    dx[i] = (add ? dx[i] : T(0)) + slope * dy[i];
  });
}

template <class T>
void add_tensors(const T* a, const T* b, T* y, std::int64_t n, cudaStream_t stream) {
  each(n, stream, [=] __device__(std::int64_t i) { y[i] = a[i] + b[i]; });
}

template <class T>
void add_bias(T* y, const T* b, std::int64_t N, std::int64_t K, std::int64_t elems, cudaStream_t stream) {
  each_plane(N, K, elems, stream, [=] __device__(std::int64_t k, std::int64_t i) { y[i] += b[k]; });
}

template <class T>
void bias_gradient(const T* dy, T* db, std::int64_t N, std::int64_t K, std::int64_t elems, bool add, void* scratch,
                   cudaStream_t stream) {
  channel_sums<1>(
      N, K, elems, scratch, stream,
      [=] __device__(std::int64_t, std::int64_t i, double* sums) { sums[0] += static_cast<double>(dy[i]); },
      [=] __device__(std::int64_t k, const double* sums) { db[k] = (add ? db[k] : T(0)) + static_cast<T>(sums[0]); });
}

namespace {

// Where (n, c, i) lies; i counts the image's elements.
struct Place {
  std::int64_t C, elems;
  Layout layout;

  __device__ std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t i) const {
    if (layout == Layout::plain) return (n * C + c) * elems + i;
    if (layout == Layout::channels_last) return (n * elems + i) * C + c;
    const std::int64_t block = layout == Layout::blocked8 ? 8 : 16;
    const std::int64_t blocks = (C + block - 1) / block;
    return ((n * blocks + c / block) * elems + i) * block + c % block;
  }
};

}  // namespace

template <class T>
void reorder(const T* x, Layout from, T* y, Layout to, const Shape& shape, cudaStream_t stream) {
  const bool image = shape.rank() == 4;
  const std::int64_t C = image ? shape[1] : 1;
  const std::int64_t elems = image ? shape[2] * shape[3] : shape.elems();
  const Place src{C, elems, image ? from : Layout::plain};
  const Place dst{C, elems, image ? to : Layout::plain};
  const std::int64_t block = dst.layout == Layout::blocked8 ? 8 : dst.layout == Layout::blocked16 ? 16 : 1;
  const std::int64_t stored = (C + block - 1) / block * block;  // channels that are written, padding included
  each(image ? shape[0] * stored * elems : elems, stream, [=] __device__(std::int64_t index) {
    const std::int64_t n = index / (stored * elems);
    const std::int64_t c = index / elems % stored;
    const std::int64_t i = index % elems;
    y[dst.at(n, c, i)] = c < C ? x[src.at(n, c, i)] : T(0);
  });
}

#define ECHELON_INSTANTIATE(T)                                                                                       \
  template void activation_forward<T>(Activation, const T*, T*, std::int64_t, cudaStream_t);                         \
  template void activation_backward<T>(Activation, const T*, const T*, T*, std::int64_t, bool, cudaStream_t);        \
  template void add_tensors<T>(const T*, const T*, T*, std::int64_t, cudaStream_t);                                  \
  template void add_bias<T>(T*, const T*, std::int64_t, std::int64_t, std::int64_t, cudaStream_t);                   \
  template void bias_gradient<T>(const T*, T*, std::int64_t, std::int64_t, std::int64_t, bool, void*, cudaStream_t); \
  template void reorder<T>(const T*, Layout, T*, Layout, const Shape&, cudaStream_t);
ECHELON_INSTANTIATE(float)
ECHELON_INSTANTIATE(double)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
