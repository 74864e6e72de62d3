// SPDX-License-Identifier: Apache-2.0
#include "cuda/check.hpp"

#include <fmt/format.h>

#include <array>

#include "base/error.hpp"

namespace echelon::cuda {
namespace {

[[noreturn]] void fail(bool memory, const std::string& what) {
  if (memory) throw MemoryError("out of GPU memory: " + what);
  throw EnvironmentError("the CUDA device failed: " + what);
}
[[noreturn]] void fail(bool memory, const std::string& error, const char* call, const char* file, int line) {
  fail(memory, fmt::format("{} in {} at {}:{}", error, call, file, line));
}

}  // namespace

void check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // a refused call leaves its error as the thread's last error
  fail(status == cudaErrorMemoryAllocation,
       fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status)), call, file, line);
}

void check(cudnnStatus_t status, const char* call, const char* file, int line) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> details{};
  cudnnGetLastErrorString(details.data(), details.size());
  const bool memory = status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  fail(memory, fmt::format("{} {}", cudnnGetErrorString(status), details.data()), call, file, line);
}

void check(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(status == CUBLAS_STATUS_ALLOC_FAILED, cublasGetStatusString(status), call, file, line);
}

bool passed(cudaError_t query, const char* call, const char* file, int line) {
  if (query == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check(query, call, file, line);
  return true;
}

void check_launch(const std::string& what) {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  fail(status == cudaErrorMemoryAllocation,
       fmt::format("{} ({}) at {}", cudaGetErrorString(status), cudaGetErrorName(status), what));
}

}  // namespace echelon::cuda
