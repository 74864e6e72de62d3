// SPDX-License-Identifier: Apache-2.0
// cuDNN 9 API, "cudnn_ops Library" and the setters of "cudnn_cnn Library". Status codes are those of cuDNN 9.19, with
// which test_library.cpp compares them.
#include "tests/cuda_calls/standin/dnn.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace echelon::calls {
namespace {

struct StatusName {
  cudnnStatus_t status;
  const char* name;
};
#define STATUS(status) \
  { status, #status }
constexpr StatusName kStatusNames[] = {
    STATUS(CUDNN_STATUS_SUCCESS),
    STATUS(CUDNN_STATUS_NOT_INITIALIZED),
    STATUS(CUDNN_STATUS_BAD_PARAM),
    STATUS(CUDNN_STATUS_NOT_SUPPORTED),
    STATUS(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED),
    STATUS(CUDNN_STATUS_EXECUTION_FAILED),
};
#undef STATUS

const char* name_of(cudnnStatus_t status) {
  for (const StatusName& known : kStatusNames)
    if (known.status == status) return known.name;
  return "CUDNN_STATUS_?";
}

// "The total size of the tensor descriptor exceeds the maximum limit of 2 Giga-elements": below 2^31.
bool fits(const std::vector<std::int64_t>& extents) {
  std::int64_t elems = 1;
  for (const std::int64_t extent : extents) {
    elems *= extent;
    if (elems > std::numeric_limits<int>::max()) return false;
  }
  return true;
}

bool positive(const std::vector<std::int64_t>& extents) {
  return std::all_of(extents.begin(), extents.end(), [](std::int64_t extent) { return extent > 0; });
}

template <class T, class Handle>
cudnnStatus_t make_descriptor(const Call& call, Handle* out, const char* kind) {
  if (!call.demand(out != nullptr, "null")) return CUDNN_STATUS_BAD_PARAM;
  *out = handle_of<Handle>(call.make<T>(kind));
  return CUDNN_STATUS_SUCCESS;
}

// Null means no descriptor, and is no error.
template <class T, class Handle>
cudnnStatus_t end_descriptor(const Call& call, Handle handle, const char* kind) {
  return call.ended(!handle || call.take<T>(handle, kind) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM);
}

}  // namespace

std::string text_of(cudnnStatus_t status) { return name_of(status); }

std::int64_t size_of(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE: return 8;
    case CUDNN_DATA_FLOAT: return 4;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16: return 2;
    default: return 0;
  }
}

std::size_t bytes_of(const Tensor& tensor) {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < tensor.extents.size(); ++d) last += (tensor.extents[d] - 1) * tensor.strides[d];
  return static_cast<std::size_t>((last + 1) * size_of(tensor.type));
}

std::size_t bytes_of(const Filter& filter) {
  std::int64_t elems = 1;
  for (const std::int64_t extent : filter.extents) elems *= extent;
  return static_cast<std::size_t>(elems * size_of(filter.type));
}

DnnHandle* dnn_of(const Call& call, cudnnHandle_t handle) {
  auto* dnn = call.find<DnnHandle>(handle, kDnn);
  if (!dnn || !call.on_device(*dnn)) return nullptr;
  // Without one, work goes to the default stream ("cudnnSetStream").
  if (!call.demand(dnn->stream && dnn->stream->alive, "a handle without a stream, or whose stream is destroyed"))
    return nullptr;
  return dnn;
}

}  // namespace echelon::calls

using namespace echelon::calls;

extern "C" {

std::size_t cudnnGetVersion() {
  STAND_IN_END;
  return book().settings().dnn_version > 0 ? book().settings().dnn_version : CUDNN_VERSION;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  STAND_IN_END;
  return name_of(status);
}

void cudnnGetLastErrorString(char* message, std::size_t bytes) {
  STAND_IN_END;
  if (call.demand(message && bytes > 0, "no room")) std::snprintf(message, bytes, "(details of the stand-in)");
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  STAND_IN(cudnnStatus_t);
  if (!outside_capture(call)) return CUDNN_STATUS_NOT_INITIALIZED;
  return make_descriptor<DnnHandle>(call, handle, kDnn);
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  STAND_IN_END;
  outside_capture(call);
  auto* dnn = call.take<DnnHandle>(handle, kDnn);
  if (dnn) call.on_device(*dnn);
  return call.ended(dnn ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM);
}

// "Mismatch between the user stream and the cuDNN handle context."
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream_handle) {
  STAND_IN(cudnnStatus_t);
  auto* dnn = call.find<DnnHandle>(handle, kDnn);
  Stream* stream = stream_of(call, stream_handle);
  if (!dnn || !stream) return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH, dnn->device == stream->device, "a stream of device {}, a handle of {}",
         stream->device, dnn->device);
  dnn->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* out) {
  STAND_IN(cudnnStatus_t);
  return make_descriptor<Tensor>(call, out, kTensor);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t handle) {
  STAND_IN_END;
  return end_descriptor<Tensor>(call, handle, kTensor);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t handle, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  STAND_IN(cudnnStatus_t);
  auto* tensor = call.find<Tensor>(handle, kTensor);
  if (!tensor) return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_BAD_PARAM, format == CUDNN_TENSOR_NCHW || format == CUDNN_TENSOR_NHWC, "format {}",
         static_cast<int>(format));
  DEMAND(CUDNN_STATUS_BAD_PARAM, size_of(type) > 0, "type {}", static_cast<int>(type));
  const std::vector<std::int64_t> extents{n, c, h, w};
  DEMAND(CUDNN_STATUS_BAD_PARAM, positive(extents), "extents {} {} {} {}", n, c, h, w);
  DEMAND(CUDNN_STATUS_NOT_SUPPORTED, fits(extents), "2^31 elements or more: {} {} {} {}", n, c, h, w);
  tensor->set = true;
  tensor->type = type;
  tensor->extents = extents;
  const std::int64_t C = c, H = h, W = w;
  if (format == CUDNN_TENSOR_NCHW)
    tensor->strides = {C * H * W, H * W, W, 1};
  else
    tensor->strides = {C * H * W, 1, W * C, C};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t handle, cudnnDataType_t type, int rank,
                                         const int extents[], const int strides[]) {
  STAND_IN(cudnnStatus_t);
  auto* tensor = call.find<Tensor>(handle, kTensor);
  if (!tensor) return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_BAD_PARAM, extents && strides && size_of(type) > 0 && rank > 0, "null, rank {} or type {}", rank,
         static_cast<int>(type));
  DEMAND(CUDNN_STATUS_NOT_SUPPORTED, rank <= CUDNN_DIM_MAX, "rank {}", rank);
  const std::vector<std::int64_t> extent(extents, extents + rank), stride(strides, strides + rank);
  DEMAND(CUDNN_STATUS_BAD_PARAM, positive(extent), "an extent below 1");
  // A negative stride is accepted here, and refused by functions that read the tensor ("negative tensor striding").
  DEMAND(CUDNN_STATUS_BAD_PARAM, positive(stride), "a stride below 1");
  DEMAND(CUDNN_STATUS_NOT_SUPPORTED, fits(extent), "2^31 elements or more");
  tensor->set = true;
  tensor->type = type;
  tensor->extents = extent;
  tensor->strides = stride;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* out) {
  STAND_IN(cudnnStatus_t);
  return make_descriptor<Filter>(call, out, kFilter);
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t handle) {
  STAND_IN_END;
  return end_descriptor<Filter>(call, handle, kFilter);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t handle, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  STAND_IN(cudnnStatus_t);
  auto* filter = call.find<Filter>(handle, kFilter);
  if (!filter) return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_BAD_PARAM, format == CUDNN_TENSOR_NCHW || format == CUDNN_TENSOR_NHWC, "format {}",
         static_cast<int>(format));
  DEMAND(CUDNN_STATUS_BAD_PARAM, size_of(type) > 0, "type {}", static_cast<int>(type));
  DEMAND(CUDNN_STATUS_BAD_PARAM, positive({k, c, h, w}), "extents {} {} {} {}", k, c, h, w);
  filter->set = true;
  filter->type = type;
  filter->extents = {k, c, h, w};
  filter->last = format == CUDNN_TENSOR_NHWC;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t handle, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int rank, const int extents[]) {
  STAND_IN(cudnnStatus_t);
  auto* filter = call.find<Filter>(handle, kFilter);
  if (!filter) return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_BAD_PARAM, extents && rank > 2 && size_of(type) > 0, "null, rank {} or type {}", rank,
         static_cast<int>(type));
  DEMAND(CUDNN_STATUS_NOT_SUPPORTED, rank <= CUDNN_DIM_MAX && format == CUDNN_TENSOR_NCHW, "rank {} or format {}", rank,
         static_cast<int>(format));
  const std::vector<std::int64_t> extent(extents, extents + rank);
  DEMAND(CUDNN_STATUS_BAD_PARAM, positive(extent), "an extent below 1");
  filter->set = true;
  filter->type = type;
  filter->extents = extent;
  filter->last = false;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* out) {
  STAND_IN(cudnnStatus_t);
  return make_descriptor<Convolution>(call, out, kConvolution);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t handle) {
  STAND_IN_END;
  return end_descriptor<Convolution>(call, handle, kConvolution);
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t handle, int pad_h, int pad_w, int stride_h,
                                              int stride_w, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t type) {
  STAND_IN(cudnnStatus_t);
  auto* conv = call.find<Convolution>(handle, kConvolution);
  if (!conv) return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_BAD_PARAM, pad_h >= 0 && pad_w >= 0, "padding {} {}", pad_h, pad_w);
  DEMAND(CUDNN_STATUS_BAD_PARAM, stride_h > 0 && stride_w > 0, "strides {} {}", stride_h, stride_w);
  DEMAND(CUDNN_STATUS_BAD_PARAM, dilation_h > 0 && dilation_w > 0, "dilations {} {}", dilation_h, dilation_w);
  DEMAND(CUDNN_STATUS_BAD_PARAM, mode == CUDNN_CROSS_CORRELATION, "mode {}", static_cast<int>(mode));
  // "The supported configurations of computeType": no sums in bf16.
  DEMAND(CUDNN_STATUS_BAD_PARAM, size_of(type) > 0 && type != CUDNN_DATA_BFLOAT16, "sums of type {}",
         static_cast<int>(type));
  conv->set = true;
  conv->type = type;
  conv->pads = {pad_h, pad_w};
  conv->strides = {stride_h, stride_w};
  conv->dilations = {dilation_h, dilation_w};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t handle, int axes, const int pads[],
                                              const int strides[], const int dilations[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t type) {
  STAND_IN(cudnnStatus_t);
  auto* conv = call.find<Convolution>(handle, kConvolution);
  if (!conv) return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_BAD_PARAM, pads && strides && dilations && axes >= 0, "null, or {} axes", axes);
  DEMAND(CUDNN_STATUS_NOT_SUPPORTED, axes <= CUDNN_DIM_MAX - 2, "{} axes", axes);
  for (int axis = 0; axis < axes; ++axis)
    DEMAND(CUDNN_STATUS_BAD_PARAM, pads[axis] >= 0 && strides[axis] > 0 && dilations[axis] > 0,
           "padding {}, stride {} and dilation {} of axis {}", pads[axis], strides[axis], dilations[axis], axis);
  DEMAND(CUDNN_STATUS_BAD_PARAM, mode == CUDNN_CROSS_CORRELATION, "mode {}", static_cast<int>(mode));
  DEMAND(CUDNN_STATUS_BAD_PARAM, size_of(type) > 0 && type != CUDNN_DATA_BFLOAT16, "sums of type {}",
         static_cast<int>(type));
  conv->set = true;
  conv->type = type;
  conv->pads.assign(pads, pads + axes);
  conv->strides.assign(strides, strides + axes);
  conv->dilations.assign(dilations, dilations + axes);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t handle, int groups) {
  STAND_IN(cudnnStatus_t);
  auto* conv = call.find<Convolution>(handle, kConvolution);
  if (!conv) return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_BAD_PARAM, groups > 0, "{} groups", groups);
  conv->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t handle, cudnnMathType_t math) {
  STAND_IN(cudnnStatus_t);
  auto* conv = call.find<Convolution>(handle, kConvolution);
  if (!conv) return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_BAD_PARAM, math >= CUDNN_DEFAULT_MATH && math <= CUDNN_FMA_MATH, "math type {}",
         static_cast<int>(math));
  conv->math = math;
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
