// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/rnn_step.hpp"

#include "cuda/kernels/each.cuh"

namespace echelon::cuda {
namespace {

template <class T>
__device__ T sigmoid(T a) {
  return T(1) / (T(1) + ::exp(-a));
}

}  // namespace

template <class T>
void rnn_step_forward(const RnnStepDims& d, const StepForward<T>& at, cudaStream_t stream) {
  const std::int64_t G = d.G(), P = d.P();
  each(d.N * d.U, stream, [=] __device__(std::int64_t i) {
    const std::int64_t n = i / d.U, u = i % d.U, row = n * d.T + d.t;
    const T* a = at.a + row * G * d.U + u;
    const T* product = at.product + n * G * d.U + u;
    const T* bias = at.bias + u;
    T* gates = at.gates + row * P * d.U + u;
    const T before = at.h[n * d.H + d.begin + u];
    if (at.lengths && d.first + d.t >= at.lengths[n]) {
      for (std::int64_t p = 0; p < P; ++p) gates[p * d.U] = 0;
      at.h_next[i] = before;
      if (at.c_next) at.c_next[i] = at.c[i];
      return;
    }
    const auto back = [&](std::int64_t g) { return product[g * d.U] + bias[g * d.U]; };
    const auto sum = [&](std::int64_t g) { return a[g * d.U] + back(g); };
    switch (d.cell) {
      case Cell::tanh: at.h_next[i] = gates[0] = ::tanh(sum(0)); return;
      case Cell::relu: {
        const T a0 = sum(0);
        at.h_next[i] = gates[0] = a0 < 0 ? T(0) : a0;  // NaN stays
        return;
      }
      case Cell::lstm: {
        const T in = gates[0] = sigmoid(sum(0)), f = gates[d.U] = sigmoid(sum(1));
        const T g = gates[2 * d.U] = ::tanh(sum(2)), o = gates[3 * d.U] = sigmoid(sum(3));
        const T c = at.c_next[i] = f * at.c[i] + in * g;
        at.h_next[i] = o * ::tanh(c);
        return;
      }
      case Cell::gru: {
        const T r = gates[0] = sigmoid(sum(0)), z = gates[d.U] = sigmoid(sum(1));
        const T b = gates[3 * d.U] = back(2), m = gates[2 * d.U] = ::tanh(a[2 * d.U] + r * b);
        at.h_next[i] = (1 - z) * m + z * before;
        return;
      }
    }
  });
}

template <class T>
void rnn_step_backward(const RnnStepDims& d, const StepBackward<T>& at, cudaStream_t stream) {
  const std::int64_t G = d.G(), P = d.P();
  each(d.N * d.H, stream, [=] __device__(std::int64_t i) {
    const std::int64_t n = i / d.H, u = i % d.H - d.begin;
    at.dh[i] = 0;
    if (u < 0 || u >= d.U) return;
    const std::int64_t row = n * d.T + d.t, own = n * d.U + u;
    const T* gates = at.gates + row * P * d.U + u;
    T* da = at.da + row * G * d.U + u;
    T* db = at.db ? at.db + row * G * d.U + u : da;
    T dh = at.dh_next[i];
    if (at.lengths && d.first + d.t >= at.lengths[n]) {
      for (std::int64_t g = 0; g < G; ++g) da[g * d.U] = db[g * d.U] = 0;
      if (at.dc) at.dc[own] = at.dc_next[own];
      at.dh[i] = dh;
      return;
    }
    if (at.dy) dh += at.dy[row * d.H + d.begin + u];
    switch (d.cell) {
      case Cell::tanh: da[0] = dh * (1 - gates[0] * gates[0]); return;
      case Cell::relu: da[0] = gates[0] > 0 ? dh : T(0); return;
      case Cell::lstm: {
        const T in = gates[0], f = gates[d.U], g = gates[2 * d.U], o = gates[3 * d.U], bent = ::tanh(at.c_next[own]);
        const T dc = at.dc_next[own] + dh * o * (1 - bent * bent);
        da[0] = dc * g * in * (1 - in);
        da[d.U] = dc * at.c[own] * f * (1 - f);
        da[2 * d.U] = dc * in * (1 - g * g);
        da[3 * d.U] = dh * bent * o * (1 - o);
        at.dc[own] = dc * f;
        return;
      }
      case Cell::gru: {
        const T r = gates[0], z = gates[d.U], m = gates[2 * d.U], dm = dh * (1 - z) * (1 - m * m);
        da[0] = db[0] = dm * gates[3 * d.U] * r * (1 - r);
        da[d.U] = db[d.U] = dh * (at.hs[row * d.H + d.begin + u] - m) * z * (1 - z);
        da[2 * d.U] = dm;
        db[2 * d.U] = dm * r;
        at.dh[i] = dh * z;
        return;
      }
    }
  });
}

template <class T>
void place_step(const PlaceStepDims& d, const T* x, const std::int32_t* lengths, T* y, cudaStream_t stream) {
  each(d.N * d.F, stream, [=] __device__(std::int64_t i) {
    const std::int64_t n = i / d.F;
    const bool there = !lengths || d.first + d.t < lengths[n];
    y[(n * d.T + d.t) * d.F + i % d.F] = there ? x[i] : T(0);
  });
}

#define ECHELON_INSTANTIATE(T)                                                                  \
  template void rnn_step_forward<T>(const RnnStepDims&, const StepForward<T>&, cudaStream_t);   \
  template void rnn_step_backward<T>(const RnnStepDims&, const StepBackward<T>&, cudaStream_t); \
  template void place_step<T>(const PlaceStepDims&, const T*, const std::int32_t*, T*, cudaStream_t);
ECHELON_INSTANTIATE(float)
ECHELON_INSTANTIATE(double)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
