// SPDX-License-Identifier: Apache-2.0
// The functions that libechelon_cuda.so exports (device/cuda_entry.hpp).
#include <cuda_runtime_api.h>

#include <cstdio>

#include "cuda/device.hpp"
#include "device/cuda_entry.hpp"

namespace {

// The kernels are compiled for sm_80, for sm_90 and, as PTX, for later architectures.
constexpr int kLeastMajor = 8;

}  // namespace

extern "C" {

__attribute__((visibility("default"))) const char* echelon_cuda_abi() { return echelon::kCudaAbi; }

__attribute__((visibility("default"))) int echelon_cuda_count(char* why, std::size_t why_bytes) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();
    std::snprintf(why, why_bytes, "no usable CUDA device: %s (%s)",
                  cudaGetErrorString(status == cudaSuccess ? cudaErrorNoDevice : status),
                  cudaGetErrorName(status == cudaSuccess ? cudaErrorNoDevice : status));
    return 0;
  }
  for (int index = 0; index < count; ++index) {
    int major = 0;
    int minor = 0;
    cudaError_t asked = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index);
    if (asked == cudaSuccess) asked = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index);
    if (asked != cudaSuccess) {
      cudaGetLastError();
      std::snprintf(why, why_bytes, "no usable CUDA device: %s (%s) in cudaDeviceGetAttribute of GPU %d",
                    cudaGetErrorString(asked), cudaGetErrorName(asked), index);
      return 0;
    }
    if (major >= kLeastMajor) continue;
    std::snprintf(
        why, why_bytes,
        "no usable CUDA device: GPU %d is sm_%d%d, but sm_%d0 or later is needed (if there are other GPUs, hide "
        "this one with CUDA_VISIBLE_DEVICES)",
        index, major, minor, kLeastMajor);
    return 0;
  }
  return count;
}

__attribute__((visibility("default"))) echelon::Device* echelon_cuda_open(const echelon::DeviceOptions* options) {
  return echelon::cuda::make_device(*options).release();
}

}  // extern "C"
