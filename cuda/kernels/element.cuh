// SPDX-License-Identifier: Apache-2.0
// Loads and stores of elements: loaded as Wide<T>, stored with one rounding. In f16 values beyond 65504 become
// infinite.
#pragma once

#include "cuda/types.hpp"

namespace echelon::cuda {

__host__ __device__ inline float wide(float value) { return value; }
__host__ __device__ inline double wide(double value) { return value; }
__host__ __device__ inline float wide(Half value) { return __half2float(value); }
__host__ __device__ inline float wide(BHalf value) { return __bfloat162float(value); }

template <class T>
__device__ double exact(T value) {
  return static_cast<double>(wide(value));
}

template <class T>
struct Narrow {
  static __device__ T from(Wide<T> value) { return value; }
};
template <>
struct Narrow<Half> {
  static __device__ Half from(float value) { return __float2half_rn(value); }
};
template <>
struct Narrow<BHalf> {
  static __device__ BHalf from(float value) { return __float2bfloat16_rn(value); }
};

// *at = value, or *at += value; V is float or double.
template <class T, class V>
__device__ void put(T* at, V value, bool add = false) {
  const auto rounded = static_cast<Wide<T>>(value);
  *at = Narrow<T>::from(add ? wide(*at) + rounded : rounded);
}

}  // namespace echelon::cuda
