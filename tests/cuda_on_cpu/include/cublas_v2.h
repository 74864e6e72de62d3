// SPDX-License-Identifier: Apache-2.0
// Products as plain sums in double.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

using cublasHandle_t = struct cublasContext*;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_ALLOC_FAILED = 3 };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasMath_t { CUBLAS_DEFAULT_MATH = 0, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16 };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_64F };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT };

cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t bytes);
const char* cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m,
                               std::int64_t n, std::int64_t k, const void* alpha, const void* a, cudaDataType a_type,
                               std::int64_t lda, const void* b, cudaDataType b_type, std::int64_t ldb, const void* beta,
                               void* c, cudaDataType c_type, std::int64_t ldc, cublasComputeType_t compute,
                               cublasGemmAlgo_t algorithm);
cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                                             std::int64_t m, std::int64_t n, std::int64_t k, const void* alpha,
                                             const void* a, cudaDataType a_type, std::int64_t lda, std::int64_t a_step,
                                             const void* b, cudaDataType b_type, std::int64_t ldb, std::int64_t b_step,
                                             const void* beta, void* c, cudaDataType c_type, std::int64_t ldc,
                                             std::int64_t c_step, std::int64_t count, cublasComputeType_t compute,
                                             cublasGemmAlgo_t algorithm);
// The arrays hold host addresses, because all memory is host memory here.
cublasStatus_t cublasGemmBatchedEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                                      std::int64_t m, std::int64_t n, std::int64_t k, const void* alpha,
                                      const void* const a[], cudaDataType a_type, std::int64_t lda,
                                      const void* const b[], cudaDataType b_type, std::int64_t ldb, const void* beta,
                                      void* const c[], cudaDataType c_type, std::int64_t ldc, std::int64_t count,
                                      cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
