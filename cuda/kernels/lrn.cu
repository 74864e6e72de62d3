// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/lrn.hpp"

namespace echelon::cuda {
namespace {

// s of one element: k + alpha/size * the sum of squares over the channels around it.
template <class W>
struct Scale {
  std::int64_t C, plane, before, after;  // channels of the window before and after its own
  W share, k;

  Scale(const LrnDims& d, std::int64_t elems)
      : C(d.C),
        plane(elems),
        before(d.size / 2),
        after((d.size - 1) / 2),
        share(static_cast<W>(d.alpha / static_cast<double>(d.size))),
        k(static_cast<W>(d.k)) {}

  __device__ std::int64_t channel(std::int64_t i) const { return i / plane % C; }
  template <class T>
  __device__ W at(const T* x, std::int64_t i) const {
    const std::int64_t c = channel(i);
    const std::int64_t low = c < before ? -c : -before, high = c + after < C ? after : C - 1 - c;
    W sum = 0;
    for (std::int64_t j = low; j <= high; ++j) sum += wide(x[i + j * plane]) * wide(x[i + j * plane]);
    return k + share * sum;
  }
};

}  // namespace

template <class T>
void lrn_forward(const LrnDims& d, const ChannelExtents& e, const T* x, T* y, cudaStream_t stream) {
  const Scale<Wide<T>> scale(d, e.elems);
  const auto beta = static_cast<Wide<T>>(d.beta);
  each(e.N * e.C * e.elems, stream,
       [=] __device__(std::int64_t i) { put(y + i, wide(x[i]) * ::pow(scale.at(x, i), -beta)); });
}

template <class T>
void lrn_backward(const LrnDims& d, const ChannelExtents& e, const T* x, const T* dy, T* dx, bool add, Wide<T>* scratch,
                  cudaStream_t stream) {
  using W = Wide<T>;
  const Scale<W> scale(d, e.elems);
  const W beta = static_cast<W>(d.beta), factor = 2 * scale.share * beta;
  const std::int64_t n = e.N * e.C * e.elems;
  each(n, stream, [=] __device__(std::int64_t i) {
    const W s = scale.at(x, i);
    scratch[i] = wide(dy[i]) * ::pow(s, -beta) * wide(x[i]) / s;
  });
  // The windows that contain a channel begin `after` before it and end `before` behind it.
  each(n, stream, [=] __device__(std::int64_t i) {
    const std::int64_t c = scale.channel(i);
    const std::int64_t low = c < scale.after ? -c : -scale.after;
    const std::int64_t high = c + scale.before < scale.C ? scale.before : scale.C - 1 - c;
    W sum = 0;
    for (std::int64_t j = low; j <= high; ++j) sum += scratch[i + j * scale.plane];
    put(dx + i, wide(dy[i]) * ::pow(scale.at(x, i), -beta) - factor * wide(x[i]) * sum, add);
  });
}

#define ECHELON_INSTANTIATE(T)                                                                                 \
  template void lrn_forward<T>(const LrnDims&, const ChannelExtents&, const T*, T*, cudaStream_t);             \
  template void lrn_backward<T>(const LrnDims&, const ChannelExtents&, const T*, const T*, T*, bool, Wide<T>*, \
                                cudaStream_t);
ECHELON_CUDA_TYPES(ECHELON_INSTANTIATE)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
