// SPDX-License-Identifier: Apache-2.0
// cuBLAS constants for element types. cuBLAS is column-major: it sees a row-major (rows, columns) matrix as the
// transposed one, with leading dimension `columns`. One handle on one stream with atomics off gives the same bits in
// every run.
#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <type_traits>

#include "cuda/check.hpp"
#include "cuda/context.hpp"
#include "cuda/types.hpp"

namespace echelon::cuda {

template <class T>
inline constexpr cudaDataType kBlasType = CUDA_R_32F;
template <>
inline constexpr cudaDataType kBlasType<double> = CUDA_R_64F;
template <>
inline constexpr cudaDataType kBlasType<Half> = CUDA_R_16F;
template <>
inline constexpr cudaDataType kBlasType<BHalf> = CUDA_R_16BF;

// Sums are in Wide<T>; `tf32`: f32 factors may be rounded to TF32.
template <class T>
constexpr cublasComputeType_t blas_compute(bool tf32) {
  if (std::is_same_v<T, double>) return CUBLAS_COMPUTE_64F;
  return std::is_same_v<T, float> && tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

struct GemmExtents {
  std::int64_t m, n, k;
};

// Column-major c (m, n) = op(a) op(b) + beta * c, where k is the inner extent; sums are in Wide<T>, c of either type.
template <class T, class Out>
void gemm(const Context& context, bool tf32, cublasOperation_t op_a, cublasOperation_t op_b, const GemmExtents& e,
          const T* a, std::int64_t lda, const T* b, std::int64_t ldb, bool add, Out* c, std::int64_t ldc) {
  const Wide<T> one = 1;
  const Wide<T> beta = add ? 1 : 0;
  ECHELON_CUDA(cublasGemmEx_64(context.blas(), op_a, op_b, e.m, e.n, e.k, &one, a, kBlasType<T>, lda, b, kBlasType<T>,
                               ldb, &beta, c, kBlasType<Out>, ldc, blas_compute<T>(tf32), CUBLAS_GEMM_DEFAULT));
}

}  // namespace echelon::cuda
