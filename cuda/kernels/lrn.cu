#include "cuda/kernels/each.cuh"
#include "cuda/kernels/lrn.hpp"

namespace echelon::cuda {
namespace {

// s of one element: k + alpha/size * the sum of squares over the channels around it.
template <class T>
struct Scale {
  std::int64_t C, plane, before, after;  // channels of the window before and after its own
  T share, k;

  explicit Scale(const LrnDims& d)
      : C(d.C),
        plane(d.H * d.W),
        before(d.size / 2),
        after((d.size - 1) / 2),
        share(static_cast<T>(d.alpha / static_cast<double>(d.size))),
        k(static_cast<T>(d.k)) {}

  __device__ std::int64_t channel(std::int64_t i) const { return i / plane % C; }
  __device__ T at(const T* x, std::int64_t i) const {
    const std::int64_t c = channel(i);
    const std::int64_t low = c < before ? -c : -before, high = c + after < C ? after : C - 1 - c;
    T sum = 0;
    for (std::int64_t j = low; j <= high; ++j) sum += x[i + j * plane] * x[i + j * plane];
    return k + share * sum;
  }
};

}  // namespace

template <class T>
void lrn_forward(const LrnDims& d, const T* x, T* y, cudaStream_t stream) {
  const Scale<T> scale(d);
  const T beta = static_cast<T>(d.beta);
  each(d.N * d.C * scale.plane, stream, [=] __device__(std::int64_t i) { y[i] = x[i] * ::pow(scale.at(x, i), -beta); });
}

template <class T>
void lrn_backward(const LrnDims& d, const T* x, const T* dy, T* dx, bool add, T* scratch, cudaStream_t stream) {
  const Scale<T> scale(d);
  const T beta = static_cast<T>(d.beta), factor = 2 * scale.share * beta;
  const std::int64_t n = d.N * d.C * scale.plane;
  each(n, stream, [=] __device__(std::int64_t i) {
    const T s = scale.at(x, i);
    scratch[i] = dy[i] * ::pow(s, -beta) * x[i] / s;
  });
  // The windows that hold a channel begin `after` before it and end `before` behind it.
  each(n, stream, [=] __device__(std::int64_t i) {
    const std::int64_t c = scale.channel(i);
    const std::int64_t low = c < scale.after ? -c : -scale.after;
    const std::int64_t high = c + scale.before < scale.C ? scale.before : scale.C - 1 - c;
    T sum = 0;
    for (std::int64_t j = low; j <= high; ++j) sum += scratch[i + j * scale.plane];
    const T value = dy[i] * ::pow(scale.at(x, i), -beta) - factor * x[i] * sum;
    dx[i] = (add ? dx[i] : T(0)) + value;
  });
}

#define ECHELON_INSTANTIATE(T)                                              \
  template void lrn_forward<T>(const LrnDims&, const T*, T*, cudaStream_t); \
  template void lrn_backward<T>(const LrnDims&, const T*, const T*, T*, bool, T*, cudaStream_t);
ECHELON_INSTANTIATE(float)
ECHELON_INSTANTIATE(double)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
