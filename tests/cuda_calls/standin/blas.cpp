// SPDX-License-Identifier: Apache-2.0
// cuBLAS Library User Guide 13.0: "cublasGemmEx()", "cublasGemmBatchedEx()", "cublasGemmStridedBatchedEx()",
// "cuBLAS Helper Function Reference".
#include <algorithm>

#include "tests/cuda_calls/standin/streams.hpp"

namespace echelon::calls {
namespace {

constexpr const char* kBlas = "cuBLAS handle";

struct BlasHandle : Object {
  Stream* stream = nullptr;
  std::size_t workspace_bytes = 0;  // Object::uses is the workspace; 0: the library's own
};

struct StatusName {
  cublasStatus_t status;
  const char* name;
};
#define STATUS(status) \
  { status, #status }
constexpr StatusName kStatusNames[] = {STATUS(CUBLAS_STATUS_SUCCESS),       STATUS(CUBLAS_STATUS_NOT_INITIALIZED),
                                       STATUS(CUBLAS_STATUS_ALLOC_FAILED),  STATUS(CUBLAS_STATUS_INVALID_VALUE),
                                       STATUS(CUBLAS_STATUS_NOT_SUPPORTED), STATUS(CUBLAS_STATUS_EXECUTION_FAILED)};
#undef STATUS

const char* name_of(cublasStatus_t status) {
  for (const StatusName& known : kStatusNames)
    if (known.status == status) return known.name;
  return "CUBLAS_STATUS_?";
}

std::int64_t size_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_64F: return 8;
    case CUDA_R_32F: return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    default: return 0;
  }
}

// The rows of the table in "cublasGemmEx()" whose scale type is that of the sums.
bool is_row(cublasComputeType_t compute, cudaDataType ab, cudaDataType c) {
  if (compute == CUBLAS_COMPUTE_64F) return ab == CUDA_R_64F && c == CUDA_R_64F;
  if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return ab == CUDA_R_32F && c == CUDA_R_32F;
  if (compute != CUBLAS_COMPUTE_32F) return false;
  if (ab == CUDA_R_32F) return c == CUDA_R_32F;
  return (ab == CUDA_R_16F || ab == CUDA_R_16BF) && (c == ab || c == CUDA_R_32F);
}

struct Matrix {
  const void* data;
  cudaDataType type;
  std::int64_t rows, columns, leading, stride;  // column-major; `stride` is the distance between matrices of the batch
  const char* name;

  Range range(std::int64_t batch) const {
    const std::int64_t elems = (batch - 1) * stride + (columns - 1) * leading + rows;
    return {data, rows > 0 && columns > 0 && batch > 0 ? static_cast<std::size_t>(elems * size_of(type)) : 0, name};
  }
};

// Whether the matrices of a batch do not overlap: "multiple C matrices must not overlap".
bool disjoint(const Matrix& c, std::int64_t batch) {
  if (batch <= 1) return true;
  const bool behind = c.stride >= (c.columns - 1) * c.leading + c.rows;     // one after another
  const bool beside = c.stride >= c.rows && batch * c.stride <= c.leading;  // side by side in wide rows
  return behind || beside;
}

BlasHandle* blas_of(const Call& call, cublasHandle_t handle) {
  auto* blas = call.find<BlasHandle>(handle, kBlas);
  if (!blas || !call.on_device(*blas)) return nullptr;
  if (!call.demand(blas->stream && blas->stream->alive, "a handle without a stream, or whose stream is destroyed"))
    return nullptr;
  return blas;
}

Range workspace_of(const BlasHandle& blas) { return {blas.uses, blas.workspace_bytes, "the workspace"}; }

struct Product {
  cublasOperation_t op_a, op_b;
  std::int64_t m, n, k;
  const void *alpha, *beta;
  cublasComputeType_t compute;
  cublasGemmAlgo_t algo;
};

// Checks operations, extents, types, leading dimensions and factors; sets the extents of the matrices.
cublasStatus_t product_rules(const Call& call, const Product& p, Matrix& a, Matrix& b, Matrix& c, std::int64_t batch) {
  const auto plain = [](cublasOperation_t op) { return op == CUBLAS_OP_N; };
  DEMAND(CUBLAS_STATUS_INVALID_VALUE,
         (plain(p.op_a) || p.op_a == CUBLAS_OP_T) && (plain(p.op_b) || p.op_b == CUBLAS_OP_T), "operations");
  // "m, n, k < 0" are invalid; with 0 nothing is computed, which is never intended.
  DEMAND(CUBLAS_STATUS_INVALID_VALUE, p.m > 0 && p.n > 0 && p.k > 0 && batch > 0, "extents {} {} {}, {} of them", p.m,
         p.n, p.k, batch);
  DEMAND(CUBLAS_STATUS_NOT_SUPPORTED, a.type == b.type && is_row(p.compute, a.type, c.type),
         "factors of types {} and {}, product of {}, sums of {}", static_cast<int>(a.type), static_cast<int>(b.type),
         static_cast<int>(c.type), static_cast<int>(p.compute));
  DEMAND(CUBLAS_STATUS_INVALID_VALUE, p.algo == CUBLAS_GEMM_DEFAULT, "algorithm {}", static_cast<int>(p.algo));
  a.rows = plain(p.op_a) ? p.m : p.k, a.columns = plain(p.op_a) ? p.k : p.m;
  b.rows = plain(p.op_b) ? p.k : p.n, b.columns = plain(p.op_b) ? p.n : p.k;
  c.rows = p.m, c.columns = p.n;
  // "lda < max(1, m)" if transa is N, else max(1, k), and so on.
  for (const Matrix* matrix : {&a, &b, &c})
    DEMAND(CUBLAS_STATUS_INVALID_VALUE, matrix->leading >= matrix->rows, "{}: leading dimension {} of {} rows",
           matrix->name, matrix->leading, matrix->rows);
  // Pointers of the host (CUBLAS_POINTER_MODE_HOST, the default), of the scale type.
  DEMAND(CUBLAS_STATUS_INVALID_VALUE, p.alpha && p.beta, "alpha or beta is null");
  const bool wide = p.compute == CUBLAS_COMPUTE_64F;
  const auto value = [&](const void* at) {
    return wide ? *static_cast<const double*>(at) : static_cast<double>(*static_cast<const float*>(at));
  };
  DEMAND(CUBLAS_STATUS_INVALID_VALUE,
         value(p.alpha) > 0 && value(p.alpha) <= 1 && (value(p.beta) == 0 || value(p.beta) == 1),
         "alpha {} and beta {}", value(p.alpha), value(p.beta));
  return CUBLAS_STATUS_SUCCESS;
}

// Enqueues a product that reads and writes the ranges, on the handle's stream.
cublasStatus_t enqueue_product(const Call& call, const BlasHandle& blas, std::vector<Range> ranges) {
  // "cublasSetWorkspace": without one, a captured product takes memory of the graph.
  DEMAND(CUBLAS_STATUS_EXECUTION_FAILED, !blas.stream->capturing || blas.workspace_bytes > 0,
         "captured with the library's own workspace");
  ranges.push_back(workspace_of(blas));
  enqueue_on(call, *blas.stream, std::move(ranges));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t multiply(const Call& call, cublasHandle_t handle, const Product& p, Matrix a, Matrix b, Matrix c,
                        std::int64_t batch) {
  BlasHandle* blas = blas_of(call, handle);
  if (!blas) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (const cublasStatus_t wrong = product_rules(call, p, a, b, c, batch); wrong != CUBLAS_STATUS_SUCCESS) return wrong;
  for (const Matrix& matrix : {a, b, c})
    if (!call.in_device(matrix.range(batch), static_cast<std::size_t>(size_of(matrix.type))))
      return CUBLAS_STATUS_INVALID_VALUE;
  DEMAND(CUBLAS_STATUS_INVALID_VALUE, disjoint(c, batch), "the products of a batch overlap");
  if (!call.apart(c.range(1), {a.range(batch), b.range(batch), workspace_of(*blas)}))
    return CUBLAS_STATUS_INVALID_VALUE;
  return enqueue_product(call, *blas, {a.range(batch), b.range(batch), c.range(batch)});
}

// The arrays of pointers are in device memory, written by a kernel: the addresses in them are not known here.
cublasStatus_t multiply_by_pointers(const Call& call, cublasHandle_t handle, const Product& p, Matrix a, Matrix b,
                                    Matrix c, std::int64_t batch) {
  BlasHandle* blas = blas_of(call, handle);
  if (!blas) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (const cublasStatus_t wrong = product_rules(call, p, a, b, c, batch); wrong != CUBLAS_STATUS_SUCCESS) return wrong;
  std::vector<Range> arrays;
  for (const Matrix& matrix : {a, b, c}) {
    arrays.push_back({matrix.data, static_cast<std::size_t>(batch) * sizeof(void*), matrix.name});
    if (!call.in_device(arrays.back(), alignof(void*))) return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!call.apart(arrays[2], {arrays[0], arrays[1], workspace_of(*blas)})) return CUBLAS_STATUS_INVALID_VALUE;
  return enqueue_product(call, *blas, std::move(arrays));
}

}  // namespace

std::string text_of(cublasStatus_t status) { return name_of(status); }

}  // namespace echelon::calls

using namespace echelon::calls;

extern "C" {

const char* cublasGetStatusString(cublasStatus_t status) {
  STAND_IN_END;
  return name_of(status);
}

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  STAND_IN(cublasStatus_t);
  if (!outside_capture(call) || !handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = handle_of<cublasHandle_t>(call.make<BlasHandle>(kBlas));
  return CUBLAS_STATUS_SUCCESS;
}

// Waits for the device ("cublasDestroy").
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  STAND_IN_END;
  outside_capture(call);
  auto* blas = call.take<BlasHandle>(handle, kBlas);
  if (blas && call.on_device(*blas)) run_device(blas->device);
  return call.ended(blas ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED);
}

// "cublasSetStream() unconditionally resets the cuBLAS library workspace back to the default workspace pool".
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream_handle) {
  STAND_IN(cublasStatus_t);
  auto* blas = call.find<BlasHandle>(handle, kBlas);
  Stream* stream = stream_of(call, stream_handle);
  if (!blas || !stream) return CUBLAS_STATUS_NOT_INITIALIZED;
  DEMAND(CUBLAS_STATUS_INVALID_VALUE, blas->device == stream->device, "a stream of device {}, a handle of {}",
         stream->device, blas->device);
  blas->stream = stream;
  blas->uses = nullptr;
  blas->workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}

// "The user-owned workspace pointer .. must be aligned to at least 256 bytes".
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  STAND_IN(cublasStatus_t);
  BlasHandle* blas = blas_of(call, handle);
  if (!blas || !call.demand(bytes > 0, "no bytes") || !call.in_device({workspace, bytes, "the workspace"}, 256))
    return CUBLAS_STATUS_INVALID_VALUE;
  blas->uses = workspace;
  blas->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  STAND_IN(cublasStatus_t);
  auto* blas = call.find<BlasHandle>(handle, kBlas);
  if (!blas) return CUBLAS_STATUS_NOT_INITIALIZED;
  // Default math computes f32 in f32; the flag may be combined with any mode.
  const int plain = static_cast<int>(mode) & ~static_cast<int>(CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  DEMAND(CUBLAS_STATUS_INVALID_VALUE, plain == CUBLAS_DEFAULT_MATH, "mode {}", static_cast<int>(mode));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m,
                               std::int64_t n, std::int64_t k, const void* alpha, const void* a, cudaDataType a_type,
                               std::int64_t lda, const void* b, cudaDataType b_type, std::int64_t ldb, const void* beta,
                               void* c, cudaDataType c_type, std::int64_t ldc, cublasComputeType_t compute,
                               cublasGemmAlgo_t algo) {
  STAND_IN(cublasStatus_t);
  return multiply(call, handle, {op_a, op_b, m, n, k, alpha, beta, compute, algo}, {a, a_type, 0, 0, lda, 0, "A"},
                  {b, b_type, 0, 0, ldb, 0, "B"}, {c, c_type, 0, 0, ldc, 0, "C"}, 1);
}

cublasStatus_t cublasGemmBatchedEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                                      std::int64_t m, std::int64_t n, std::int64_t k, const void* alpha,
                                      const void* const a[], cudaDataType a_type, std::int64_t lda,
                                      const void* const b[], cudaDataType b_type, std::int64_t ldb, const void* beta,
                                      void* const c[], cudaDataType c_type, std::int64_t ldc, std::int64_t batch,
                                      cublasComputeType_t compute, cublasGemmAlgo_t algo) {
  STAND_IN(cublasStatus_t);
  return multiply_by_pointers(
      call, handle, {op_a, op_b, m, n, k, alpha, beta, compute, algo}, {a, a_type, 0, 0, lda, 0, "the pointers of A"},
      {b, b_type, 0, 0, ldb, 0, "the pointers of B"}, {c, c_type, 0, 0, ldc, 0, "the pointers of C"}, batch);
}

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                                             std::int64_t m, std::int64_t n, std::int64_t k, const void* alpha,
                                             const void* a, cudaDataType a_type, std::int64_t lda, long long stride_a,
                                             const void* b, cudaDataType b_type, std::int64_t ldb, long long stride_b,
                                             const void* beta, void* c, cudaDataType c_type, std::int64_t ldc,
                                             long long stride_c, std::int64_t batch, cublasComputeType_t compute,
                                             cublasGemmAlgo_t algo) {
  STAND_IN(cublasStatus_t);
  return multiply(call, handle, {op_a, op_b, m, n, k, alpha, beta, compute, algo},
                  {a, a_type, 0, 0, lda, stride_a, "A"}, {b, b_type, 0, 0, ldb, stride_b, "B"},
                  {c, c_type, 0, 0, ldc, stride_c, "C"}, batch);
}

}  // extern "C"
