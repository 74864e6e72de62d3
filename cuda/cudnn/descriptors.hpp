// SPDX-License-Identifier: Apache-2.0
// cuDNN's descriptors of one convolution, which free themselves.
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

inline cudnnDataType_t cudnn_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return CUDNN_DATA_DOUBLE;
    case DType::f16: return CUDNN_DATA_HALF;
    case DType::bf16: return CUDNN_DATA_BFLOAT16;
    default: return CUDNN_DATA_FLOAT;
  }
}

// Descriptors of x (N, C, H, W), w (K, C/groups, R, S), y (N, K, P, Q), all plain or all channels_last (w is then (K,
// R, S, C/groups)), and of the convolution; extents fit an int. Halves are summed in f32 by tensor cores. f32 is
// computed in f32, unless `tf32` lets operands be rounded.
struct ConvDescriptors {
  Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor> x, y;
  Descriptor<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor> w;
  Descriptor<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor> conv;

  ConvDescriptors(const ConvDims& d, DType dtype, Layout layout, bool tf32) {
    const auto i = [](std::int64_t extent) { return static_cast<int>(extent); };
    const cudnnDataType_t type = cudnn_type(dtype);
    const cudnnTensorFormat_t format = layout == Layout::channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    ECHELON_CUDA(cudnnSetTensor4dDescriptor(x.get(), format, type, i(d.N), i(d.C), i(d.H), i(d.W)));
    ECHELON_CUDA(cudnnSetTensor4dDescriptor(y.get(), format, type, i(d.N), i(d.K), i(d.P()), i(d.Q())));
    ECHELON_CUDA(cudnnSetFilter4dDescriptor(w.get(), type, format, i(d.K), i(d.C / d.groups), i(d.R), i(d.S)));
    ECHELON_CUDA(cudnnSetConvolution2dDescriptor(conv.get(), i(d.pad_h), i(d.pad_w), i(d.stride_h), i(d.stride_w),
                                                 i(d.dil_h), i(d.dil_w), CUDNN_CROSS_CORRELATION,
                                                 cudnn_type(wide_of(dtype))));
    ECHELON_CUDA(cudnnSetConvolutionGroupCount(conv.get(), i(d.groups)));
    // The default math mode lets f32 be rounded to TF32; f64 has no such mode.
    const bool exact = dtype == DType::f32 && !tf32;
    const cudnnMathType_t math = is_half(dtype) ? CUDNN_TENSOR_OP_MATH : exact ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
    ECHELON_CUDA(cudnnSetConvolutionMathType(conv.get(), math));
  }
};

}  // namespace echelon::cuda
