// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/rnn_weights.hpp"

namespace echelon::cuda {
namespace {

std::int64_t parameters_of(const RnnParts& p) { return p.G * p.H * (p.F + p.H + 2); }

// Calls f(which, index, at) for parameter i of the concatenation of all four tensors: index in tensor `which` (in the
// order of RnnParameters), `at` in the library's space.
template <class F>
__device__ void at_parameter(const RnnParts& p, std::int64_t i, F f) {
  const std::int64_t in = p.G * p.H * p.F, recurrent = p.G * p.H * p.H, biases = p.G * p.H;
  if (i < in) return f(0, i, p.matrix[i / (p.H * p.F)] + i % (p.H * p.F));
  i -= in;
  if (i < recurrent) return f(1, i, p.matrix[p.G + i / (p.H * p.H)] + i % (p.H * p.H));
  i -= recurrent;
  if (i < biases) return f(2, i, p.bias[i / p.H] + i % p.H);
  i -= biases;
  f(3, i, p.bias[p.G + i / p.H] + i % p.H);
}

template <class P>
__device__ P* tensor_of(const RnnParameters<P>& all, int which) {
  return which == 0 ? all.weight_x : which == 1 ? all.weight_h : which == 2 ? all.bias_x : all.bias_h;
}

}  // namespace

template <class T>
void pack_rnn_weights(const RnnParts& parts, const RnnParameters<const Wide<T>>& weights, T* space,
                      cudaStream_t stream) {
  each(parameters_of(parts), stream, [=] __device__(std::int64_t i) {
    at_parameter(parts, i, [&](int which, std::int64_t index, std::int64_t at) {
      put(space + at, tensor_of(weights, which)[index]);
    });
  });
}

template <class T>
void unpack_rnn_gradients(const RnnParts& parts, const T* space, const RnnParameters<Wide<T>>& gradients, RnnAdds adds,
                          cudaStream_t stream) {
  each(parameters_of(parts), stream, [=] __device__(std::int64_t i) {
    at_parameter(parts, i, [&](int which, std::int64_t index, std::int64_t at) {
      const bool add = which == 0 ? adds.weight_x : which == 1 ? adds.weight_h : which == 2 ? adds.bias_x : adds.bias_h;
      put(tensor_of(gradients, which) + index, wide(space[at]), add);
    });
  });
}

#define ECHELON_INSTANTIATE(T)                                                                               \
  template void pack_rnn_weights<T>(const RnnParts&, const RnnParameters<const Wide<T>>&, T*, cudaStream_t); \
  template void unpack_rnn_gradients<T>(const RnnParts&, const T*, const RnnParameters<Wide<T>>&, RnnAdds,   \
                                        cudaStream_t);
ECHELON_CUDA_TYPES(ECHELON_INSTANTIATE)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
