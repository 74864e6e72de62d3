// SPDX-License-Identifier: Apache-2.0
#include "device/onednn/rnn_cells.hpp"

#include <algorithm>

#include "device/onednn/planes.hpp"
#include "device/onednn/vector_math.hpp"

// Inlines all calls of the function and compiles it for AVX-512, so that no call passes a vector of 64 bytes.
#ifdef ECHELON_X86_BODIES
#define ECHELON_AVX512 __attribute__((target("avx512f"), flatten))
#else
#define ECHELON_AVX512 __attribute__((flatten))  // never called: RnnStep::avx512 is false
#endif

namespace echelon::inline device::onednn {
namespace {

// Prefetches what the next row will read at index j while this row is computed. A row is a page or less, and the
// hardware prefetcher stops at the end of a page.
void expect_row(const float* next, std::int64_t j) {
  constexpr std::int64_t kLine = 16;  // floats
  if (j % kLine == 0) __builtin_prefetch(next + j);
}
void expect_parts(const RnnStep& step, const float* parts, std::int64_t j) {
  for (std::int64_t part = 0; part < parts_of(step.cell); ++part) expect_row(parts + step.parts_row + part * step.H, j);
}

// Returns a row of an array that may be null.
template <class T>
T* row_of(T* array, std::int64_t offset) {
  return array ? array + offset : nullptr;
}

// Computes row n for one cell.
template <Cell kCell, int kMost>
void row_forward(const RnnStep& step, const RnnForward& at, std::int64_t n) {
  const std::int64_t H = step.H;
  float* parts = at.parts + n * step.parts_row;
  const float *b = at.product + n * gates_of(kCell) * H, *h = at.h + n * step.h_row;
  float *h_next = at.h_next + n * H, *y = row_of(at.y, n * at.y_stride);
  BHalf* y_halves = row_of(at.y_halves, n * at.y_stride);
  over_lanes<kMost>(H, [&]<int kLanes>(std::int64_t j) {
    expect_parts(step, parts, j);
    expect_row(h_next + H, j);
    if constexpr (kCell == Cell::lstm) expect_row(at.c_next + (n + 1) * H, j);
    if (y) expect_row(y + at.y_stride, j);
    using L = Lanes<kLanes, kMost>;
    using Math = VectorMath<L>;
    using Floats = typename L::Floats;
    const auto sum = [&](std::int64_t part) {
      const std::int64_t i = part * H + j;
      return L::load(parts + i) + L::load(b + i) + L::load(at.bias + i);
    };
    Floats next;
    if constexpr (kCell == Cell::tanh) next = Math::tanh(sum(0));
    if constexpr (kCell == Cell::relu) {
      const Floats a = sum(0);
      next = a < 0.0f ? Floats{} : a;
    }
    if constexpr (kCell == Cell::lstm) {
      const Floats i = Math::sigmoid(sum(0)), f = Math::sigmoid(sum(1)), g = Math::tanh(sum(2)),
                   o = Math::sigmoid(sum(3));
      const Floats c = f * L::load(at.c + n * H + j) + i * g;
      next = o * Math::tanh(c);
      L::store(parts + j, i);
      L::store(parts + H + j, f);
      L::store(parts + 2 * H + j, g);
      L::store(parts + 3 * H + j, o);
      L::store(at.c_next + n * H + j, c);
    }
    if constexpr (kCell == Cell::gru) {
      const Floats r = Math::sigmoid(sum(0)), z = Math::sigmoid(sum(1));
      const Floats q = L::load(b + 2 * H + j) + L::load(at.bias + 3 * H + j);
      const Floats m = Math::tanh(L::load(parts + 2 * H + j) + L::load(at.bias + 2 * H + j) + r * q);
      next = (1.0f - z) * m + z * L::load(h + j);
      L::store(parts + j, r);
      L::store(parts + H + j, z);
      L::store(parts + 2 * H + j, m);
      L::store(parts + 3 * H + j, q);
    }
    L::store(h_next + j, next);
    if (y) L::store(y + j, next);
    if (y_halves) L::store(y_halves + j, next);
  });
}

void row_stays(const RnnStep& step, const RnnForward& at, std::int64_t n) {
  const std::int64_t H = step.H;
  std::copy_n(at.h + n * step.h_row, H, at.h_next + n * H);
  if (step.cell == Cell::lstm) std::copy_n(at.c + n * H, H, at.c_next + n * H);
  if (at.y) std::fill_n(at.y + n * at.y_stride, H, 0.0f);
  if (at.y_halves) std::fill_n(at.y_halves + n * at.y_stride, H, BHalf{0});
}

template <Cell kCell, int kMost>
void row_backward(const RnnStep& step, const RnnBackward& at, std::int64_t n) {
  const std::int64_t H = step.H;
  const float *parts = at.parts + n * step.parts_row, *dy = row_of(at.dy, n * at.dy_stride);
  const BHalf* dy_halves = row_of(at.dy_halves, n * at.dy_stride);
  float* dparts = at.dparts + n * step.dparts_row;
  BHalf* rounded = row_of(at.rounded, n * parts_of(kCell) * H);
  over_lanes<kMost>(H, [&]<int kLanes>(std::int64_t j) {
    expect_parts(step, parts, j);
    if (dy) expect_row(dy + at.dy_stride, j);
    if constexpr (kCell == Cell::lstm)
      for (const float* c : {at.c, at.c_next}) expect_row(c + (n + 1) * H, j);
    using L = Lanes<kLanes, kMost>;
    using Floats = typename L::Floats;
    const std::int64_t i = n * H + j;
    Floats dh = L::load(at.product + i) + L::load(at.passed + i), passed{};
    if (dy) dh += L::load(dy + j);
    if (dy_halves) dh += L::load(dy_halves + j);
    const auto store = [&](std::int64_t part, Floats gradient) {
      L::store(dparts + part * H + j, gradient);
      if (rounded) L::store(rounded + part * H + j, gradient);
    };
    if constexpr (kCell == Cell::tanh) {
      const Floats y = L::load(parts + j);
      store(0, dh * (1.0f - y * y));
    }
    if constexpr (kCell == Cell::relu) store(0, L::load(parts + j) > 0.0f ? dh : Floats{});
    if constexpr (kCell == Cell::lstm) {
      const Floats in = L::load(parts + j), f = L::load(parts + H + j), g = L::load(parts + 2 * H + j),
                   o = L::load(parts + 3 * H + j);
      const Floats bent = VectorMath<L>::tanh(L::load(at.c_next + i));
      const Floats dc = L::load(at.dc + i) + dh * o * (1.0f - bent * bent);
      store(0, dc * g * in * (1.0f - in));
      store(1, dc * L::load(at.c + i) * f * (1.0f - f));
      store(2, dc * in * (1.0f - g * g));
      store(3, dh * bent * o * (1.0f - o));
      L::store(at.dc + i, dc * f);
    }
    if constexpr (kCell == Cell::gru) {
      const Floats r = L::load(parts + j), z = L::load(parts + H + j), m = L::load(parts + 2 * H + j);
      const Floats dm = dh * (1.0f - z) * (1.0f - m * m);
      const Floats dr = dm * L::load(parts + 3 * H + j) * r * (1.0f - r);
      const Floats dz = dh * (L::load(at.h + n * step.h_row + j) - m) * z * (1.0f - z);
      float* dproduct = at.dproduct + n * 3 * H + j;
      store(0, dr);
      store(1, dz);
      store(2, dm);
      store(3, dm * r);
      L::store(dproduct, dr);
      L::store(dproduct + H, dz);
      L::store(dproduct + 2 * H, dm * r);
      passed = dh * z;
    }
    L::store(at.passed + i, passed);
  });
}

void row_passes(const RnnStep& step, const RnnBackward& at, std::int64_t n) {
  const std::int64_t H = step.H, parts = parts_of(step.cell);
  for (std::int64_t i = n * H; i < (n + 1) * H; ++i) at.passed[i] += at.product[i];
  std::fill_n(at.dparts + n * step.dparts_row, parts * H, 0.0f);
  if (at.rounded) std::fill_n(at.rounded + n * parts * H, parts * H, BHalf{0});
  if (step.cell == Cell::gru) std::fill_n(at.dproduct + n * 3 * H, 3 * H, 0.0f);
}

template <Cell kCell>
ECHELON_AVX512 void row_forward_512(const RnnStep& step, const RnnForward& at, std::int64_t n) {
  row_forward<kCell, 16>(step, at, n);
}
template <Cell kCell>
ECHELON_AVX512 void row_backward_512(const RnnStep& step, const RnnBackward& at, std::int64_t n) {
  row_backward<kCell, 16>(step, at, n);
}

// Runs `active` for the active rows and `idle` for the others.
template <class Active, class Idle>
void over_rows(const RnnStep& step, const Active& active, const Idle& idle) {
#pragma omp parallel for num_threads(step.threads) if (step.threads > 1 && step.N * step.H >= kParallelElems / 4)
  for (std::int64_t n = 0; n < step.N; ++n) step.active(n) ? active(n) : idle(n);
}

template <Cell kCell>
void forward(const RnnStep& step, const RnnForward& at) {
  const auto row = step.avx512 ? row_forward_512<kCell> : row_forward<kCell, 8>;
  over_rows(
      step, [&](std::int64_t n) { row(step, at, n); }, [&](std::int64_t n) { row_stays(step, at, n); });
}

template <Cell kCell>
void backward(const RnnStep& step, const RnnBackward& at) {
  const auto row = step.avx512 ? row_backward_512<kCell> : row_backward<kCell, 8>;
  over_rows(
      step, [&](std::int64_t n) { row(step, at, n); }, [&](std::int64_t n) { row_passes(step, at, n); });
}

}  // namespace

void rnn_bias(Cell cell, std::int64_t H, const float* bias_x, const float* bias_h, float* bias) {
  const std::int64_t joint = cell == Cell::lstm ? 4 * H : cell == Cell::gru ? 2 * H : H;
  for (std::int64_t i = 0; i < joint; ++i) bias[i] = (bias_x ? bias_x[i] : 0.0f) + bias_h[i];
  if (cell != Cell::gru) return;
  for (std::int64_t i = 0; i < H; ++i) bias[2 * H + i] = bias_x ? bias_x[2 * H + i] : 0.0f;
  std::copy_n(bias_h + 2 * H, H, bias + 3 * H);
}

void rnn_step_forward(const RnnStep& step, const RnnForward& at) {
  switch (step.cell) {
    case Cell::tanh: return forward<Cell::tanh>(step, at);
    case Cell::relu: return forward<Cell::relu>(step, at);
    case Cell::lstm: return forward<Cell::lstm>(step, at);
    case Cell::gru: return forward<Cell::gru>(step, at);
  }
}

void rnn_step_backward(const RnnStep& step, const RnnBackward& at) {
  switch (step.cell) {
    case Cell::tanh: return backward<Cell::tanh>(step, at);
    case Cell::relu: return backward<Cell::relu>(step, at);
    case Cell::lstm: return backward<Cell::lstm>(step, at);
    case Cell::gru: return backward<Cell::gru>(step, at);
  }
}

}  // namespace echelon::inline device::onednn
