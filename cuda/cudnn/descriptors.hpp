// cuDNN's descriptors of one convolution, freed by themselves.
#pragma once

#include <cudnn.h>

#include <memory>

#include "cuda/check.hpp"
#include "device/op_spec.hpp"

namespace echelon::cuda {

template <class Handle, cudnnStatus_t (*create)(Handle*), cudnnStatus_t (*destroy)(Handle)>
class Descriptor {
 public:
  Descriptor() { ECHELON_CUDA(create(&handle_)); }
  ~Descriptor() { destroy(handle_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

// Of x (N, C, H, W), w (K, C/groups, R, S), y (N, K, P, Q) and the convolution; extents fit an int.
struct ConvDescriptors {
  Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor> x, y;
  Descriptor<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor> w;
  Descriptor<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor> conv;

  ConvDescriptors(const ConvDims& d, DType dtype) {
    const auto i = [](std::int64_t extent) { return static_cast<int>(extent); };
    const cudnnDataType_t type = dtype == DType::f64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    ECHELON_CUDA(cudnnSetTensor4dDescriptor(x.get(), CUDNN_TENSOR_NCHW, type, i(d.N), i(d.C), i(d.H), i(d.W)));
    ECHELON_CUDA(cudnnSetTensor4dDescriptor(y.get(), CUDNN_TENSOR_NCHW, type, i(d.N), i(d.K), i(d.P()), i(d.Q())));
    ECHELON_CUDA(
        cudnnSetFilter4dDescriptor(w.get(), type, CUDNN_TENSOR_NCHW, i(d.K), i(d.C / d.groups), i(d.R), i(d.S)));
    ECHELON_CUDA(cudnnSetConvolution2dDescriptor(conv.get(), i(d.pad_h), i(d.pad_w), i(d.stride_h), i(d.stride_w),
                                                 i(d.dil_h), i(d.dil_w), CUDNN_CROSS_CORRELATION, type));
    ECHELON_CUDA(cudnnSetConvolutionGroupCount(conv.get(), i(d.groups)));
    // The default for f32 would round operands to TF32; f64 has no such mode.
    const cudnnMathType_t math = dtype == DType::f64 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
    ECHELON_CUDA(cudnnSetConvolutionMathType(conv.get(), math));
  }
};

}  // namespace echelon::cuda
