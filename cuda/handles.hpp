// SPDX-License-Identifier: Apache-2.0
// Owners of CUDA library objects, which also free them if the construction of their holder fails half way. Errors of a
// release are ignored, because at the end of a process the driver may be gone already.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>
#include <memory>
#include <type_traits>

#include "cuda/check.hpp"

namespace echelon::cuda {

template <class Handle, auto release>
struct Releases {
  using pointer = Handle;
  void operator()(Handle handle) const { (void)release(handle); }
};
template <class Handle, auto release>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Releases<Handle, release>>;

using OwnedStream = Owned<cudaStream_t, &cudaStreamDestroy>;
using OwnedEvent = Owned<cudaEvent_t, &cudaEventDestroy>;
using OwnedDnn = Owned<cudnnHandle_t, &cudnnDestroy>;
using OwnedBlas = Owned<cublasHandle_t, &cublasDestroy>;

inline void release_memory(std::byte* memory) { (void)cudaFree(memory); }
inline void release_host(std::byte* memory) { (void)cudaFreeHost(memory); }
using OwnedMemory = Owned<std::byte*, &release_memory>;
using OwnedHostMemory = Owned<std::byte*, &release_host>;

inline OwnedStream make_stream() {
  cudaStream_t stream = nullptr;
  ECHELON_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return OwnedStream(stream);
}
inline OwnedEvent make_event(unsigned flags = cudaEventDisableTiming) {
  cudaEvent_t event = nullptr;
  ECHELON_CUDA(cudaEventCreateWithFlags(&event, flags));
  return OwnedEvent(event);
}
inline OwnedMemory make_memory(std::size_t bytes) {
  void* memory = nullptr;
  ECHELON_CUDA(cudaMalloc(&memory, bytes));
  return OwnedMemory(static_cast<std::byte*>(memory));
}
// Allocates page-locked host memory.
inline OwnedHostMemory make_host_memory(std::size_t bytes) {
  void* memory = nullptr;
  ECHELON_CUDA(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
  return OwnedHostMemory(static_cast<std::byte*>(memory));
}

}  // namespace echelon::cuda
