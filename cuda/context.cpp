#include "cuda/context.hpp"

#include "cuda/check.hpp"

namespace echelon::cuda {

Context::Context(int index, bool tf32) : index_(index), tf32_(tf32) {
  use();
  ECHELON_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  ECHELON_CUDA(cudnnCreate(&dnn_));
  ECHELON_CUDA(cudnnSetStream(dnn_, stream_));
  ECHELON_CUDA(cublasCreate(&blas_));
  ECHELON_CUDA(cublasSetStream(blas_, stream_));
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
  if (stream_) cudaStreamDestroy(stream_);
}

void Context::use() const { ECHELON_CUDA(cudaSetDevice(index_)); }

}  // namespace echelon::cuda
