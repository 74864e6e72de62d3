// SPDX-License-Identifier: Apache-2.0
// The libraries' calls on host memory, without streams: all work is done at once.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cudnn.h>

#include <cstdlib>
#include <cstring>

namespace {

constexpr std::size_t kAlignment = 256;

// No code compares handles with null or with each other.
template <class Handle>
void make(Handle* handle) {
  static char anything;
  *handle = reinterpret_cast<Handle>(&anything);
}

double load(const void* data, cudaDataType type, std::int64_t i) {
  switch (type) {
    case CUDA_R_32F: return static_cast<const float*>(data)[i];
    case CUDA_R_64F: return static_cast<const double*>(data)[i];
    case CUDA_R_16F: return __half2float(static_cast<const __half*>(data)[i]);
    case CUDA_R_16BF: break;
  }
  return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
}

void store(void* data, cudaDataType type, std::int64_t i, double value) {
  switch (type) {
    case CUDA_R_32F: static_cast<float*>(data)[i] = static_cast<float>(value); return;
    case CUDA_R_64F: static_cast<double*>(data)[i] = value; return;
    case CUDA_R_16F: static_cast<__half*>(data)[i] = __half(static_cast<float>(value)); return;
    case CUDA_R_16BF: static_cast<__nv_bfloat16*>(data)[i] = __nv_bfloat16(static_cast<float>(value)); return;
  }
}

}  // namespace

cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
const char* cudaGetErrorName(cudaError_t) { return "an error"; }

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  return posix_memalign(data, kAlignment, bytes) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void* data) {
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) { return cudaMalloc(data, bytes); }
cudaError_t cudaFreeHost(void* data) { return cudaFree(data); }
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = *total_bytes = 0;
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t) {
  std::memset(data, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return make(stream), cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return make(event), cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) { return make(handle), CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnDestroy(cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "an error"; }
void cudnnGetLastErrorString(char* text, std::size_t) { *text = 0; }

cublasStatus_t cublasCreate(cublasHandle_t* handle) { return make(handle), CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasDestroy(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, std::size_t) { return CUBLAS_STATUS_SUCCESS; }
const char* cublasGetStatusString(cublasStatus_t) { return "an error"; }

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t, cublasOperation_t op_a, cublasOperation_t op_b,
                                             std::int64_t m, std::int64_t n, std::int64_t k, const void* alpha,
                                             const void* a, cudaDataType a_type, std::int64_t lda, std::int64_t a_step,
                                             const void* b, cudaDataType b_type, std::int64_t ldb, std::int64_t b_step,
                                             const void* beta, void* c, cudaDataType c_type, std::int64_t ldc,
                                             std::int64_t c_step, std::int64_t count, cublasComputeType_t compute,
                                             cublasGemmAlgo_t) {
  const cudaDataType scalar = compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F;
  const double factor = load(alpha, scalar, 0), kept = load(beta, scalar, 0);
  for (std::int64_t s = 0; s < count; ++s)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < m; ++i) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += load(a, a_type, s * a_step + (op_a == CUBLAS_OP_N ? l * lda + i : i * lda + l)) *
                 load(b, b_type, s * b_step + (op_b == CUBLAS_OP_N ? j * ldb + l : l * ldb + j));
        const std::int64_t at = s * c_step + j * ldc + i;
        store(c, c_type, at, factor * sum + (kept == 0 ? 0 : kept * load(c, c_type, at)));
      }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m,
                               std::int64_t n, std::int64_t k, const void* alpha, const void* a, cudaDataType a_type,
                               std::int64_t lda, const void* b, cudaDataType b_type, std::int64_t ldb, const void* beta,
                               void* c, cudaDataType c_type, std::int64_t ldc, cublasComputeType_t compute,
                               cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx_64(handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta,
                                       c, c_type, ldc, 0, 1, compute, algorithm);
}

cublasStatus_t cublasGemmBatchedEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                                      std::int64_t m, std::int64_t n, std::int64_t k, const void* alpha,
                                      const void* const a[], cudaDataType a_type, std::int64_t lda,
                                      const void* const b[], cudaDataType b_type, std::int64_t ldb, const void* beta,
                                      void* const c[], cudaDataType c_type, std::int64_t ldc, std::int64_t count,
                                      cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  for (std::int64_t s = 0; s < count; ++s)
    cublasGemmEx_64(handle, op_a, op_b, m, n, k, alpha, a[s], a_type, lda, b[s], b_type, ldb, beta, c[s], c_type, ldc,
                    compute, algorithm);
  return CUBLAS_STATUS_SUCCESS;
}
