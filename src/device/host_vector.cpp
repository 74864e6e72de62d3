// SPDX-License-Identifier: Apache-2.0
// Vector operations on host memory: loops that the compiler turns into AVX2, each as fast as memory allows on one core.
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "device/vector.hpp"

namespace echelon::inline device {
namespace {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// The value without its sign, as an integer with the same order: inf above every number, NaN above inf.
template <class T>
Bits<T> magnitude(T value) {
  constexpr Bits<T> mask = ~(Bits<T>{1} << (8 * sizeof(T) - 1));
  return std::bit_cast<Bits<T>>(value) & mask;
}

template <class T>
constexpr Bits<T> kInfinity = sizeof(T) == 4 ? Bits<T>{0x7f800000} : static_cast<Bits<T>>(0x7ff0000000000000LL);

// `simd` is valid here and below, because dst and src are equal or do not overlap: no element depends on an earlier
// one.
template <class T>
void add(T* dst, const T* src, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) dst[i] += src[i];
}

template <class T>
void axpy(T* dst, T factor, const T* src, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) dst[i] += factor * src[i];
}

template <class T, bool adapts>
void compensate(const DelayCompensation& how, const CompensatedUpdate& update, std::size_t n) {
  const Compensate<T, adapts> value(how, update);
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) value(i);
}

// Sixteen partial sums in double, element i in sum i mod 16, added in a fixed tree: the order depends only on n.
template <class T>
double sum_squares(const T* src, std::size_t n) {
  constexpr std::size_t kLanes = 16;
  std::array<double, kLanes> sums{};
  const std::size_t whole = n / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(src[i + lane]);
      sums[lane] += value * value;
    }
  for (std::size_t i = whole; i < n; ++i) {
    const auto value = static_cast<double>(src[i]);
    sums[i - whole] += value * value;
  }
  for (std::size_t half = kLanes / 2; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  return sums[0];
}

template <class T>
double max_abs(const T* src, std::size_t n) {
  Bits<T> most = 0;
#pragma omp simd reduction(max : most)
  for (std::size_t i = 0; i < n; ++i) {
    const Bits<T> value = magnitude(src[i]);
    most = most > value ? most : value;
  }
  return static_cast<double>(std::bit_cast<T>(most));
}

template <class T>
std::size_t count_not_finite(const T* src, std::size_t n) {
  std::size_t count = 0;
  constexpr std::size_t kBlock = std::size_t{1} << 20;  // so that a 32-bit count suffices inside
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    const std::size_t end = n - begin < kBlock ? n : begin + kBlock;
    Bits<T> inside = 0;
#pragma omp simd reduction(+ : inside)
    for (std::size_t i = begin; i < end; ++i) inside += magnitude(src[i]) >= kInfinity<T> ? 1 : 0;
    count += static_cast<std::size_t>(inside);
  }
  return count;
}

class HostVectorOps final : public VectorOps {
 public:
  void fill(DType dtype, void* dst, double value, std::size_t n) override {
    with_float(dtype, [&]<class T>(T) {
      T* at = static_cast<T*>(dst);
      for (std::size_t i = 0; i < n; ++i) at[i] = static_cast<T>(value);
    });
  }
  void copy(DType dtype, void* dst, const void* src, std::size_t n) override {
    if (n > 0 && dst != src) std::memcpy(dst, src, n * size_of(dtype));
  }
  void add(DType dtype, void* dst, const void* src, std::size_t n) override {
    with_float(dtype, [&]<class T>(T) { echelon::add(static_cast<T*>(dst), static_cast<const T*>(src), n); });
  }
  void scale(DType dtype, void* dst, double factor, std::size_t n) override {
    with_float(dtype, [&]<class T>(T) {
      T* at = static_cast<T*>(dst);
      for (std::size_t i = 0; i < n; ++i) at[i] *= static_cast<T>(factor);
    });
  }
  void axpy(DType dtype, void* dst, double factor, const void* src, std::size_t n) override {
    with_float(dtype, [&]<class T>(T) {
      echelon::axpy(static_cast<T*>(dst), static_cast<T>(factor), static_cast<const T*>(src), n);
    });
  }
  void compensate(DType dtype, const DelayCompensation& how, const CompensatedUpdate& update, std::size_t n) override {
    with_float(dtype, [&]<class T>(T) {
      how.adapts() ? echelon::compensate<T, true>(how, update, n) : echelon::compensate<T, false>(how, update, n);
    });
  }
  double sum_squares(DType dtype, const void* src, std::size_t n) override {
    return with_float(dtype, [&]<class T>(T) { return echelon::sum_squares(static_cast<const T*>(src), n); });
  }
  double max_abs(DType dtype, const void* src, std::size_t n) override {
    return with_float(dtype, [&]<class T>(T) { return echelon::max_abs(static_cast<const T*>(src), n); });
  }
  std::size_t count_not_finite(DType dtype, const void* src, std::size_t n) override {
    return with_float(dtype, [&]<class T>(T) { return echelon::count_not_finite(static_cast<const T*>(src), n); });
  }
};

}  // namespace

VectorOps& host_vector_ops() {
  static HostVectorOps ops;
  return ops;
}

}  // namespace echelon::inline device
