#include "cuda/context.hpp"

#include "cuda/check.hpp"

namespace echelon::cuda {

Context::Context(int index) : index_(index) {
  use();
  ECHELON_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  ECHELON_CUDA(cudnnCreate(&dnn_));
  ECHELON_CUDA(cudnnSetStream(dnn_, stream_));
  ECHELON_CUDA(cublasCreate(&blas_));
  ECHELON_CUDA(cublasSetStream(blas_, stream_));
  // Default math computes f32 in f32: TF32 is a mode of its own that nobody asks for here.
  ECHELON_CUDA(cublasSetMathMode(blas_, CUBLAS_DEFAULT_MATH));
}

// Nothing can be done about errors here; at the end of a process the driver may be gone already.
Context::~Context() {
  cudaSetDevice(index_);
  if (stream_) cudaStreamSynchronize(stream_);
  if (blas_) cublasDestroy(blas_);
  if (dnn_) cudnnDestroy(dnn_);
  if (stream_) cudaStreamDestroy(stream_);
}

void Context::use() const { ECHELON_CUDA(cudaSetDevice(index_)); }

}  // namespace echelon::cuda
