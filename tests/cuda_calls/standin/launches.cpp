// SPDX-License-Identifier: Apache-2.0
// Launches of kernels, as nvcc's host code makes them (crt/host_runtime.h). Kernels do nothing here; the launch itself
// is checked: Programming Guide, "Features and Technical Specifications", table "Technical Specifications per Compute
// Capability".
#include <array>
#include <map>
#include <string>

#include "tests/cuda_calls/standin/streams.hpp"

namespace echelon::calls {
namespace {

constexpr std::size_t kSharedBytes = 48 << 10;  // without cudaFuncAttributeMaxDynamicSharedMemorySize
constexpr unsigned kBlockThreads = 1024;

struct Configuration {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

thread_local std::vector<Configuration> configurations;

// The names of kernels by the address that the host launches; filled before main and when a library is opened.
std::map<const void*, std::string>& kernels() {
  static auto& all = *new std::map<const void*, std::string>;
  return all;
}

bool in(const dim3& extents, unsigned x, unsigned y, unsigned z) {
  return extents.x >= 1 && extents.x <= x && extents.y >= 1 && extents.y <= y && extents.z >= 1 && extents.z <= z;
}

}  // namespace
}  // namespace echelon::calls

using namespace echelon::calls;

extern "C" {

void** __cudaRegisterFatBinary(void* binary) {
  static std::array<void*, 1> handle;
  handle[0] = binary;
  return handle.data();
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  kernels()[host] = name;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, CUstream_st* stream) {
  STAND_IN_END;
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream) {
  STAND_IN(cudaError_t);
  DEMAND(cudaErrorInvalidValue, !configurations.empty(), "no configuration");
  const Configuration top = configurations.back();
  configurations.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return call.result(cudaSuccess);
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  STAND_IN(cudaError_t);
  DEMAND(cudaErrorInvalidDeviceFunction, kernels().count(host) == 1, "no kernel of this library");
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return call.result(cudaSuccess);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                               cudaStream_t handle) {
  STAND_IN(cudaError_t);
  const auto found = kernels().find(reinterpret_cast<const void*>(kernel));
  DEMAND(cudaErrorInvalidDeviceFunction, found != kernels().end() && arguments, "no kernel");
  Stream* stream = stream_of(call, handle);
  if (!stream) return call.result(cudaErrorInvalidResourceHandle);
  // "A kernel launch will fail if it is issued to a stream that is not associated to the current device".
  DEMAND(cudaErrorInvalidResourceHandle, stream->device == this_thread().device,
         "{}: a stream of device {} while device {} is current", found->second, stream->device, this_thread().device);
  DEMAND(cudaErrorInvalidConfiguration, in(grid, 0x7FFFFFFF, 65535, 65535), "{}: a grid of {} x {} x {}", found->second,
         grid.x, grid.y, grid.z);
  DEMAND(cudaErrorInvalidConfiguration,
         in(block, kBlockThreads, kBlockThreads, 64) && block.x * block.y * block.z <= kBlockThreads,
         "{}: a block of {} x {} x {}", found->second, block.x, block.y, block.z);
  DEMAND(cudaErrorInvalidValue, shared_bytes <= kSharedBytes, "{}: {} bytes of shared memory", found->second,
         shared_bytes);
  enqueue(*stream, {});
  return call.result(cudaSuccess);
}

}  // extern "C"
