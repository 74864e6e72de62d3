// SPDX-License-Identifier: Apache-2.0
#include "cuda/context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/error.hpp"
#include "cuda/check.hpp"

namespace echelon::cuda {
namespace {

// The size that cuBLAS recommends on sm_90; its default workspaces are smaller and are reallocated when a stream is
// captured.
constexpr std::size_t kBlasWorkspaceBytes = std::size_t{32} << 20;

std::string gib(std::size_t bytes) { return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30)); }

OwnedDnn make_dnn(cudaStream_t stream) {
  cudnnHandle_t handle = nullptr;
  ECHELON_CUDA(cudnnCreate(&handle));
  OwnedDnn dnn(handle);
  ECHELON_CUDA(cudnnSetStream(handle, stream));
  return dnn;
}

// Default math computes f32 in f32. Products of halves that are split along the sum are combined in f32.
OwnedBlas make_blas(cudaStream_t stream) {
  cublasHandle_t handle = nullptr;
  ECHELON_CUDA(cublasCreate(&handle));
  OwnedBlas blas(handle);
  ECHELON_CUDA(cublasSetStream(handle, stream));
  const int math = CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  ECHELON_CUDA(cublasSetMathMode(handle, static_cast<cublasMath_t>(math)));
  return blas;
}

}  // namespace

// cublasSetStream resets the workspace, so the workspace is set after the stream.
Context::Context(std::shared_ptr<Card> card) : card_(std::move(card)) {
  use();
  // The handles that cuDNN makes for recurrent layers work on several streams, and their bits vary from run to run
  // unless their workspaces are kept separate (cuBLAS, "Results reproducibility").
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:2", 0);
  stream_ = make_stream();
  dnn_ = make_dnn(stream_.get());
  blas_ = make_blas(stream_.get());
  const DeviceOptions& options = card_->options();
  if (options.only_counts) {
    counted_ = std::make_unique<HostMemory>(options.memory_limit_bytes, true);
    return;
  }
  blas_workspace_ = make_memory(kBlasWorkspaceBytes);
  ECHELON_CUDA(cublasSetWorkspace(blas_.get(), blas_workspace_.get(), kBlasWorkspaceBytes));
}

// Errors cannot be handled here; at the end of a process the driver may be gone already.
Context::~Context() {
  cudaSetDevice(index());
  cudaStreamSynchronize(stream());
}

Memory Context::allocate(std::size_t bytes, std::string_view tag) const {
  if (counted_) return counted_->allocate(bytes, tag);
  use();
  const auto limit = static_cast<std::size_t>(std::max<std::int64_t>(card_->options().memory_limit_bytes, 0));
  const std::size_t after = card_->now_bytes + bytes;
  if (limit > 0 && after > limit)
    throw MemoryError(
        fmt::format("device cuda: memory limit reached: {} for '{}' would raise the use to {}, above the limit of {}",
                    gib(bytes), tag, gib(after), gib(limit)));
  void* data = nullptr;
  const std::size_t taken = std::max<std::size_t>(bytes, 1);  // so that the address is valid even if bytes is 0
  if (const cudaError_t status = cudaMalloc(&data, taken); status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    throw MemoryError(
        fmt::format("device cuda: {} for '{}' cannot be allocated: {} of {} are free, and this process uses {}",
                    gib(bytes), tag, gib(free_bytes), gib(total_bytes), gib(card_->now_bytes)));
  } else {
    check(status, "cudaMalloc", __FILE__, __LINE__);
  }
  card_->now_bytes += bytes;
  card_->peak_bytes = std::max(card_->peak_bytes.load(), card_->now_bytes.load());
  Memory memory(data, bytes, [card = card_, bytes](void* address) {
    cudaSetDevice(card->index());
    cudaFree(address);  // waits until the device no longer uses it
    card->now_bytes -= bytes;
  });
  ECHELON_CUDA(cudaMemsetAsync(data, 0, taken, stream()));
  return memory;
}

}  // namespace echelon::cuda
