// SPDX-License-Identifier: Apache-2.0
// The setters of cuDNN 9 API, "cudnn_adv Library". Status codes are those of cuDNN 9.19 (test_library.cpp).
#include <algorithm>

#include "tests/cuda_calls/standin/dnn.hpp"

namespace echelon::calls {
namespace {

template <class T, class Handle>
cudnnStatus_t make_one(const Call& call, Handle* out, const char* kind) {
  if (!call.demand(out != nullptr, "null")) return CUDNN_STATUS_BAD_PARAM;
  *out = handle_of<Handle>(call.make<T>(kind));
  return CUDNN_STATUS_SUCCESS;
}
template <class T, class Handle>
cudnnStatus_t end_one(const Call& call, Handle handle, const char* kind) {
  return call.ended(!handle || call.take<T>(handle, kind) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM);
}

std::int64_t gates_of(cudnnRNNMode_t cell) { return cell == CUDNN_LSTM ? 4 : cell == CUDNN_GRU ? 3 : 1; }

// "dataType, mathPrec": f32 in f32, f64 in f64, f16 in f16 or f32, bf16 in f32; for f16 only sums in f32 are exact.
bool is_pair(cudnnDataType_t data, cudnnDataType_t sums) {
  return sums == (data == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT) ||
         (data == CUDNN_DATA_HALF && sums == CUDNN_DATA_HALF);
}

}  // namespace
}  // namespace echelon::calls

using namespace echelon::calls;

extern "C" {

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* out) {
  STAND_IN(cudnnStatus_t);
  return make_one<Dropout>(call, out, kDropout);
}
cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t handle) {
  STAND_IN_END;
  return end_one<Dropout>(call, handle, kDropout);
}

// Without dropout there are no states.
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t handle, cudnnHandle_t dnn_handle, float rate,
                                        void* states, std::size_t state_bytes, unsigned long long) {
  STAND_IN(cudnnStatus_t);
  auto* dropout = call.find<Dropout>(handle, kDropout);
  if (!dnn_of(call, dnn_handle) || !dropout) return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_BAD_PARAM, rate == 0 && !states && state_bytes == 0, "dropout {}", rate);
  dropout->set = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* out) {
  STAND_IN(cudnnStatus_t);
  return make_one<Rnn>(call, out, kRnn);
}
cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t handle) {
  STAND_IN_END;
  return end_one<Rnn>(call, handle, kRnn);
}

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t handle, cudnnRNNAlgo_t algo, cudnnRNNMode_t cell,
                                       cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
                                       cudnnRNNInputMode_t input, cudnnDataType_t type, cudnnDataType_t sums,
                                       cudnnMathType_t math, std::int32_t F, std::int32_t H, std::int32_t projection,
                                       std::int32_t layers, cudnnDropoutDescriptor_t dropout, std::uint32_t flags) {
  STAND_IN(cudnnStatus_t);
  auto* rnn = call.find<Rnn>(handle, kRnn);
  if (!rnn) return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_BAD_PARAM, F > 0 && H > 0 && projection > 0 && layers > 0, "sizes {} {} {}, {} layers", F, H,
         projection, layers);
  DEMAND(CUDNN_STATUS_BAD_PARAM, (flags & ~CUDNN_RNN_PADDED_IO_ENABLED) == 0, "flags {}", flags);
  DEMAND(CUDNN_STATUS_NOT_SUPPORTED, size_of(type) > 0 && is_pair(type, sums), "data of type {} summed in type {}",
         static_cast<int>(type), static_cast<int>(sums));
  // "projSize .. must not exceed hiddenSize"; only LSTM has a projection. The stand-in supports none.
  DEMAND(CUDNN_STATUS_NOT_SUPPORTED, projection == H, "a projection to {} of {}", projection, H);
  DEMAND(CUDNN_STATUS_NOT_SUPPORTED,
         algo == CUDNN_RNN_ALGO_STANDARD && bias == CUDNN_RNN_DOUBLE_BIAS && direction == CUDNN_UNIDIRECTIONAL &&
             input == CUDNN_LINEAR_INPUT && layers == 1,
         "another form of layer than cuda/ uses");
  DEMAND(CUDNN_STATUS_BAD_PARAM, math >= CUDNN_DEFAULT_MATH && math <= CUDNN_FMA_MATH, "math type {}",
         static_cast<int>(math));
  if (dropout && !set_one<Dropout>(call, dropout, kDropout)) return CUDNN_STATUS_BAD_PARAM;
  rnn->set = true;
  rnn->type = type;
  rnn->cell = cell;
  rnn->padded_io = (flags & CUDNN_RNN_PADDED_IO_ENABLED) != 0;
  rnn->F = F;
  rnn->H = H;
  rnn->gates = gates_of(cell);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* out) {
  STAND_IN(cudnnStatus_t);
  return make_one<RnnData>(call, out, kRnnData);
}
cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t handle) {
  STAND_IN_END;
  return end_one<RnnData>(call, handle, kRnnData);
}

// "seqLengthArray: each element must be greater than or equal to 0 and less than or equal to maxSeqLength".
cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t handle, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int T, int N, int values, const int lengths[],
                                        void*) {
  STAND_IN(cudnnStatus_t);
  auto* data = call.find<RnnData>(handle, kRnnData);
  if (!data) return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_BAD_PARAM, size_of(type) > 0 && layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED,
         "type {}, layout {}", static_cast<int>(type), static_cast<int>(layout));
  DEMAND(CUDNN_STATUS_BAD_PARAM, T > 0 && N > 0 && values > 0 && lengths, "extents {} {} {}, or no lengths", T, N,
         values);
  const std::vector<int> all(lengths, lengths + N);
  DEMAND(CUDNN_STATUS_BAD_PARAM, std::all_of(all.begin(), all.end(), [&](int n) { return n >= 0 && n <= T; }),
         "lengths {}, at most {}", fmt::join(all, ","), T);
  data->set = true;
  data->type = type;
  data->T = T;
  data->N = N;
  data->values = values;
  data->lengths = all;
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
