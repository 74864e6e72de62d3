#include "cuda/context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/error.hpp"
#include "cuda/check.hpp"

namespace echelon::cuda {
namespace {

// The size that cuBLAS recommends on sm_90; its default, smaller ones are allocated anew where a stream is captured.
constexpr std::size_t kBlasWorkspaceBytes = std::size_t{32} << 20;

std::string gib(std::size_t bytes) { return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30)); }

}  // namespace

Context::Context(int index, std::int64_t memory_limit_bytes, bool tf32)
    : Context(index, memory_limit_bytes > 0 ? static_cast<std::size_t>(memory_limit_bytes) : 0, tf32,
              std::make_shared<Usage>()) {}

Context::Context(int index, std::size_t limit_bytes, bool tf32, std::shared_ptr<Usage> usage)
    : index_(index), tf32_(tf32), limit_bytes_(limit_bytes), usage_(std::move(usage)) {
  use();
  // The handles that cuDNN makes for recurrent layers work on several streams, and give other bits from run to run
  // unless their workspaces are kept apart (cuBLAS, "Results reproducibility").
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:2", 0);
  ECHELON_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  ECHELON_CUDA(cudnnCreate(&dnn_));
  ECHELON_CUDA(cudnnSetStream(dnn_, stream_));
  ECHELON_CUDA(cublasCreate(&blas_));
  ECHELON_CUDA(cublasSetStream(blas_, stream_));
  ECHELON_CUDA(cudaMalloc(&blas_workspace_, kBlasWorkspaceBytes));
  ECHELON_CUDA(cublasSetWorkspace(blas_, blas_workspace_, kBlasWorkspaceBytes));
  // Default math computes f32 in f32. Products of halves that are cut along the sum are put together in f32.
  const int math = CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  ECHELON_CUDA(cublasSetMathMode(blas_, static_cast<cublasMath_t>(math)));
}

// Nothing can be done about errors here; at the end of a process the driver may be gone already.
Context::~Context() {
  cudaSetDevice(index_);
  if (stream_) cudaStreamSynchronize(stream_);
  if (blas_) cublasDestroy(blas_);
  if (dnn_) cudnnDestroy(dnn_);
  if (blas_workspace_) cudaFree(blas_workspace_);
  if (stream_) cudaStreamDestroy(stream_);
}

void Context::use() const { ECHELON_CUDA(cudaSetDevice(index_)); }

Memory Context::allocate(std::size_t bytes, std::string_view tag) const {
  use();
  const std::size_t after = usage_->now + bytes;
  if (limit_bytes_ > 0 && after > limit_bytes_)
    throw MemoryError(fmt::format("device cuda: {} for {} would make {}, above the limit of {}", gib(bytes), tag,
                                  gib(after), gib(limit_bytes_)));
  void* data = nullptr;
  const std::size_t taken = std::max<std::size_t>(bytes, 1);  // so that the address is one even where bytes is 0
  if (const cudaError_t status = cudaMalloc(&data, taken); status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    throw MemoryError(fmt::format("device cuda: {} for {} do not fit: {} of {} are free, {} are ours", gib(bytes), tag,
                                  gib(free_bytes), gib(total_bytes), gib(usage_->now)));
  } else {
    ECHELON_CUDA(status);
  }
  usage_->now += bytes;
  usage_->peak = std::max(usage_->peak.load(), usage_->now.load());
  Memory memory(data, bytes, [usage = usage_, bytes, index = index_](void* address) {
    cudaSetDevice(index);
    cudaFree(address);  // waits until the device has done with it
    usage->now -= bytes;
  });
  ECHELON_CUDA(cudaMemsetAsync(data, 0, taken, stream_));
  return memory;
}

}  // namespace echelon::cuda
