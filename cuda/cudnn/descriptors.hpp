// SPDX-License-Identifier: Apache-2.0
// cuDNN's descriptors of one convolution, which free themselves.
#pragma once

#include <cudnn.h>

#include <array>
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

// Descriptors of x (N, C, in), w (K, C/groups, kernel), y (N, K, out), all plain or, for images, all channels_last (w
// is then (K, R, S, C/groups)), and of the convolution; extents fit an int. A series is an image of height 1, and a
// volume is described with three axes. Halves are summed in f32 by tensor cores. f32 is computed in f32, unless `tf32`
// lets operands be rounded.
struct ConvDescriptors {
  Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor> x, y;
  Descriptor<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor> w;
  Descriptor<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor> conv;

  ConvDescriptors(const ConvDims& d, DType dtype, Layout layout, bool tf32) {
    const auto i = [](std::int64_t extent) { return static_cast<int>(extent); };
    const cudnnDataType_t type = cudnn_type(dtype);
    const cudnnTensorFormat_t format = layout == Layout::channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    const cudnnDataType_t sums = cudnn_type(wide_of(dtype));
    const SpatialExtents out = d.out();
    if (d.in.rank > 2) {
      set_volume(x.get(), type, {i(d.N), i(d.C), i(d.in.d), i(d.in.h), i(d.in.w)});
      set_volume(y.get(), type, {i(d.N), i(d.K), i(out.d), i(out.h), i(out.w)});
      const std::array<int, 5> weights = {i(d.K), i(d.C / d.groups), i(d.kernel.d), i(d.kernel.h), i(d.kernel.w)};
      ECHELON_CUDA(cudnnSetFilterNdDescriptor(w.get(), type, format, 5, weights.data()));
      const std::array<int, 3> pad = {i(d.pad.d), i(d.pad.h), i(d.pad.w)};
      const std::array<int, 3> stride = {i(d.stride.d), i(d.stride.h), i(d.stride.w)};
      const std::array<int, 3> dil = {i(d.dil.d), i(d.dil.h), i(d.dil.w)};
      ECHELON_CUDA(cudnnSetConvolutionNdDescriptor(conv.get(), 3, pad.data(), stride.data(), dil.data(),
                                                   CUDNN_CROSS_CORRELATION, sums));
    } else {
      ECHELON_CUDA(cudnnSetTensor4dDescriptor(x.get(), format, type, i(d.N), i(d.C), i(d.in.h), i(d.in.w)));
      ECHELON_CUDA(cudnnSetTensor4dDescriptor(y.get(), format, type, i(d.N), i(d.K), i(out.h), i(out.w)));
      ECHELON_CUDA(
          cudnnSetFilter4dDescriptor(w.get(), type, format, i(d.K), i(d.C / d.groups), i(d.kernel.h), i(d.kernel.w)));
      ECHELON_CUDA(cudnnSetConvolution2dDescriptor(conv.get(), i(d.pad.h), i(d.pad.w), i(d.stride.h), i(d.stride.w),
                                                   i(d.dil.h), i(d.dil.w), CUDNN_CROSS_CORRELATION, sums));
    }
    ECHELON_CUDA(cudnnSetConvolutionGroupCount(conv.get(), i(d.groups)));
    // The default math mode lets f32 be rounded to TF32; f64 has no such mode.
    const bool exact = dtype == DType::f32 && !tf32;
    const cudnnMathType_t math = is_half(dtype) ? CUDNN_TENSOR_OP_MATH : exact ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
    ECHELON_CUDA(cudnnSetConvolutionMathType(conv.get(), math));
  }

 private:
  static void set_volume(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, const std::array<int, 5>& extents) {
    std::array<int, 5> strides = {1, 1, 1, 1, 1};
    for (std::size_t axis = 4; axis > 0; --axis) strides[axis - 1] = strides[axis] * extents[axis];
    ECHELON_CUDA(cudnnSetTensorNdDescriptor(tensor, type, 5, extents.data(), strides.data()));
  }
};

}  // namespace echelon::cuda
