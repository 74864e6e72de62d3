// What the ops share of one GPU: the device's number, its one compute stream, the libraries' handles on that stream,
// and memory.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string_view>

#include "device/device.hpp"

namespace echelon::cuda {

class Context {
 public:
  // memory_limit_bytes as in DeviceOptions. Throws EnvironmentError or MemoryError.
  Context(int index, std::int64_t memory_limit_bytes, bool tf32);
  // Of the same card, with a stream and handles of its own; what both allocate is counted together.
  Context beside() const { return Context(index_, limit_bytes_, tf32_, usage_); }
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // CUDA keeps a current device per thread; every entry point calls use() first, on whichever thread it runs.
  void use() const;
  int index() const { return index_; }
  bool tf32() const { return tf32_; }  // f32 dense layers and convolutions may round their operands
  cudaStream_t stream() const { return stream_; }
  cudnnHandle_t dnn() const { return dnn_; }
  cublasHandle_t blas() const { return blas_; }

  // Zero-filled, in stream order. MemoryError above the limit or where the card has no more.
  Memory allocate(std::size_t bytes, std::string_view tag) const;
  std::size_t allocated_bytes() const { return usage_->now; }
  std::size_t peak_bytes() const { return usage_->peak; }

 private:
  // Bytes that live on the device; shared with the Memory objects, which may outlive it and die on any thread.
  struct Usage {
    std::atomic<std::size_t> now = 0;
    std::atomic<std::size_t> peak = 0;
  };

  Context(int index, std::size_t limit_bytes, bool tf32, std::shared_ptr<Usage> usage);

  int index_;
  bool tf32_;
  std::size_t limit_bytes_;
  std::shared_ptr<Usage> usage_;
  cudaStream_t stream_ = nullptr;
  cudnnHandle_t dnn_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  void* blas_workspace_ = nullptr;
};

}  // namespace echelon::cuda
