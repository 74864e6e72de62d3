// Words of cuBLAS for element types. It is column-major: a row-major (rows, columns) matrix is to it the transposed
// one, with leading dimension `columns`. One handle on one stream with atomics off gives the same bits at every run.
#pragma once

#include <cublas_v2.h>

#include <type_traits>

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

// Sums in Wide<T>; `tf32`: factors of f32 may be rounded to TF32.
template <class T>
constexpr cublasComputeType_t blas_compute(bool tf32) {
  if (std::is_same_v<T, double>) return CUBLAS_COMPUTE_64F;
  return std::is_same_v<T, float> && tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

}  // namespace echelon::cuda
