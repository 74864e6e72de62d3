// One GPU as the ops see it: the device's number, its one compute stream, and the libraries' handles on that stream.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

namespace echelon::cuda {

class Context {
 public:
  // Throws EnvironmentError or MemoryError.
  Context(int index, bool tf32);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // CUDA keeps a current device per thread; every entry point makes ours current in the thread that it is called from.
  void use() const;
  int index() const { return index_; }
  bool tf32() const { return tf32_; }  // f32 dense layers and convolutions may round their operands
  cudaStream_t stream() const { return stream_; }
  cudnnHandle_t dnn() const { return dnn_; }
  cublasHandle_t blas() const { return blas_; }

 private:
  int index_;
  bool tf32_;
  cudaStream_t stream_ = nullptr;
  cudnnHandle_t dnn_ = nullptr;
  cublasHandle_t blas_ = nullptr;
};

}  // namespace echelon::cuda
