// SPDX-License-Identifier: Apache-2.0
// Element types on the GPU: values stored as T are computed in Wide<T>, which is also the type of the parameters of ops
// on activations of T.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "base/dtype.hpp"

namespace echelon::cuda {

using Half = __half;
using BHalf = __nv_bfloat16;

template <class T>
struct WideOf {
  using Type = T;
};
template <>
struct WideOf<Half> {
  using Type = float;
};
template <>
struct WideOf<BHalf> {
  using Type = float;
};
template <class T>
using Wide = typename WideOf<T>::Type;

template <class T>
inline constexpr bool kHalf = sizeof(T) == 2;

// Calls `body(T{})` with the type of a floating dtype.
template <class Body>
decltype(auto) with_type(DType dtype, Body&& body) {
  if (dtype == DType::f16) return body(Half{});
  if (dtype == DType::bf16) return body(BHalf{});
  return with_float(dtype, body);
}

}  // namespace echelon::cuda

// Expands X for every element type of activations.
#define ECHELON_CUDA_TYPES(X) X(float) X(double) X(::echelon::cuda::Half) X(::echelon::cuda::BHalf)
