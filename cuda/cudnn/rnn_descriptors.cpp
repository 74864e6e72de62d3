// SPDX-License-Identifier: Apache-2.0
#include "cuda/cudnn/rnn_descriptors.hpp"

#include "base/check.hpp"
#include "cuda/check.hpp"

namespace echelon::cuda {
namespace {

int as_int(std::int64_t extent) { return static_cast<int>(extent); }

cudnnRNNMode_t mode_of(Cell cell) {
  switch (cell) {
    case Cell::tanh: return CUDNN_RNN_TANH;
    case Cell::relu: return CUDNN_RNN_RELU;
    case Cell::lstm: return CUDNN_LSTM;
    case Cell::gru: return CUDNN_GRU;
  }
  return CUDNN_LSTM;
}

}  // namespace

// No projection (its size is that of the state), no dropout, no TF32; padded steps of y are filled with 0.
RnnDescriptors::RnnDescriptors(cudnnHandle_t dnn, const RnnDims& d, DType dtype) : d_(d), type_(cudnn_type(dtype)) {
  ECHELON_CUDA(cudnnSetDropoutDescriptor(dropout_.get(), dnn, 0.0F, nullptr, 0, 0));
  const cudnnMathType_t math = is_half(dtype)        ? CUDNN_TENSOR_OP_MATH
                               : dtype == DType::f64 ? CUDNN_DEFAULT_MATH
                                                     : CUDNN_FMA_MATH;
  ECHELON_CUDA(cudnnSetRNNDescriptor_v8(rnn_.get(), CUDNN_RNN_ALGO_STANDARD, mode_of(d.cell), CUDNN_RNN_DOUBLE_BIAS,
                                        CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, type_, cudnn_type(wide_of(dtype)),
                                        math, as_int(d.F), as_int(d.H), as_int(d.H), 1, dropout_.get(),
                                        CUDNN_RNN_PADDED_IO_ENABLED));
  const int extents[] = {1, as_int(d.N), as_int(d.H)};
  const int strides[] = {as_int(d.N * d.H), as_int(d.H), 1};
  ECHELON_CUDA(cudnnSetTensorNdDescriptor(state_.get(), type_, 3, extents, strides));
  set_lengths(std::vector<int>(static_cast<std::size_t>(d.N), as_int(d.T)).data());
  ECHELON_CUDA(cudnnGetRNNWeightSpaceSize(dnn, rnn_.get(), &weight_bytes_));
  ECHELON_CUDA(
      cudnnGetRNNTempSpaceSizes(dnn, rnn_.get(), CUDNN_FWD_MODE_TRAINING, x_.get(), &work_bytes_, &reserve_bytes_));
}

void RnnDescriptors::set_lengths(const int* lengths) {
  double zero = 0;  // 0 in both types
  const auto set = [&](cudnnRNNDataDescriptor_t data, std::int64_t values) {
    ECHELON_CUDA(cudnnSetRNNDataDescriptor(data, type_, CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED, as_int(d_.T),
                                           as_int(d_.N), as_int(values), lengths, &zero));
  };
  set(x_.get(), d_.F);
  set(y_.get(), d_.H);
}

// The library numbers the G input matrices first, then the G recurrent ones; its gates are in our order (i f g o, r z
// n).
RnnParts RnnDescriptors::parts(cudnnHandle_t dnn, const void* space, std::size_t elem_bytes) const {
  RnnParts parts{.G = d_.G(), .H = d_.H, .F = d_.F, .matrix = {}, .bias = {}};
  const auto elem = [&](const void* address) {
    const auto bytes = static_cast<const std::byte*>(address) - static_cast<const std::byte*>(space);
    ECHELON_CHECK(bytes >= 0 && static_cast<std::size_t>(bytes) < weight_bytes_,
                  "cuDNN placed weights outside its weight space");
    return static_cast<std::int64_t>(bytes) / static_cast<std::int64_t>(elem_bytes);
  };
  const Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor> matrix, bias;
  for (int id = 0; id < 2 * as_int(parts.G); ++id) {
    void *matrix_at = nullptr, *bias_at = nullptr;
    ECHELON_CUDA(cudnnGetRNNWeightParams(dnn, rnn_.get(), 0, weight_bytes_, space, id, matrix.get(), &matrix_at,
                                         bias.get(), &bias_at));
    parts.matrix[id] = elem(matrix_at);
    parts.bias[id] = elem(bias_at);
  }
  return parts;
}

}  // namespace echelon::cuda
