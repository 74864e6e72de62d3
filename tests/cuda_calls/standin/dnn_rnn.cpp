// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: cuDNN 9 API, "cudnn_adv Library". One layer in one direction, without projection; cuda/ uses
// nothing beyond that.
#include <algorithm>
#include <cstring>

#include "tests/cuda_calls/standin/dnn.hpp"

namespace echelon::calls {
namespace {

struct Layer {
  const Rnn* rnn = nullptr;
  const RnnData *x = nullptr, *y = nullptr;

  std::size_t elem() const { return static_cast<std::size_t>(size_of(rnn->type)); }
  std::size_t sequence_bytes(std::int64_t values) const {
    return static_cast<std::size_t>(x->N * x->T * values) * elem();
  }
  std::size_t state_bytes() const { return static_cast<std::size_t>(x->N * rnn->H) * elem(); }
};

std::size_t weight_bytes(const Rnn& rnn) {
  return static_cast<std::size_t>(rnn.gates * (rnn.H * (rnn.F + rnn.H) + 2 * rnn.H) * size_of(rnn.type));
}
std::size_t work_bytes(const Rnn& rnn, const RnnData& x) {
  return static_cast<std::size_t>(x.N * x.T * rnn.gates * rnn.H * size_of(rnn.type)) + 128;
}
std::size_t reserve_bytes(const Rnn& rnn, const RnnData& x) {
  return static_cast<std::size_t>(x.N * x.T * (rnn.gates + 2) * rnn.H * size_of(rnn.type)) + 64;
}

// Written by a call at the start of the reserve space for the next call.
struct Reserve {
  std::uint64_t magic = 0x5265736572766564;
  std::uint64_t stage = 0;  // 1: after forward, 2: after the gradient of data
  std::int64_t N = 0, T = 0, F = 0, H = 0;
  friend bool operator==(const Reserve&, const Reserve&) = default;
};
Reserve reserve_of(const Layer& l, std::uint64_t stage) {
  return {.stage = stage, .N = l.x->N, .T = l.x->T, .F = l.rnn->F, .H = l.rnn->H};
}

std::optional<Layer> layer_of(const Call& call, cudnnRNNDescriptor_t rnn, cudnnRNNDataDescriptor_t x,
                              cudnnRNNDataDescriptor_t y) {
  const Layer l{set_one<Rnn>(call, rnn, kRnn), set_one<RnnData>(call, x, kRnnData),
                set_one<RnnData>(call, y, kRnnData)};
  if (!l.rnn || !l.x || !l.y) return {};
  // "xDesc, yDesc: dataType, layout, maxSeqLength, batchSize, and seqLengthArray must match"; "the parameter vectorSize
  // in xDesc must match inputSize", in yDesc hiddenSize times directions.
  const bool ok = call.demand(l.x->type == l.rnn->type && l.y->type == l.rnn->type, "sequences of another type") &
                  call.demand(l.x->T == l.y->T && l.x->N == l.y->N, "x and y have different extents") &
                  call.demand(l.x->lengths == l.y->lengths, "x and y have different lengths") &
                  call.demand(l.x->values == l.rnn->F, "x has {} values a step, not {}", l.x->values, l.rnn->F) &
                  call.demand(l.y->values == l.rnn->H, "y has {} values a step, not {}", l.y->values, l.rnn->H) &
                  // "CUDNN_RNN_PADDED_IO_ENABLED .. is required for unpacked layouts" of different lengths.
                  call.demand(l.rnn->padded_io, "unpacked sequences without padded input and output");
  return ok ? std::optional<Layer>(l) : std::nullopt;
}

// "hDesc: the first dimension must match numLayers times directions, the second batchSize, the third hiddenSize; fully
// packed".
bool is_state(const Call& call, const Layer& l, cudnnTensorDescriptor_t handle, const char* name) {
  const auto* state = set_one<Tensor>(call, handle, kTensor);
  if (!state) return false;
  const std::vector<std::int64_t> extents{1, l.x->N, l.rnn->H}, strides{l.x->N * l.rnn->H, l.rnn->H, 1};
  return call.demand(state->extents == extents && state->strides == strides && state->type == l.rnn->type,
                     "{} does not describe states of (1, {}, {})", name, l.x->N, l.rnn->H);
}

struct Spaces {
  std::size_t weight_size = 0;
  const void* weights = nullptr;
  std::size_t work_size = 0;
  void* work = nullptr;
  std::size_t reserve_size = 0;
  void* reserve = nullptr;
};

// Checks that all reads and writes are in device memory, and that outputs, workspace and reserve space overlap nothing.
bool places(const Call& call, const Layer& l, const Spaces& at, std::vector<Range> reads, std::vector<Range> writes,
            std::vector<Range>& all) {
  const std::size_t weights = weight_bytes(*l.rnn), work = work_bytes(*l.rnn, *l.x),
                    reserve = reserve_bytes(*l.rnn, *l.x);
  if (!call.demand(at.weight_size >= weights, "a weight space of {} bytes, {} are needed", at.weight_size, weights) ||
      !call.demand(at.work_size >= work, "a workspace of {} bytes, {} are needed", at.work_size, work) ||
      !call.demand(at.reserve_size >= reserve, "a reserve space of {} bytes, {} are needed", at.reserve_size, reserve))
    return false;
  writes.push_back({at.work, at.work_size, "the workspace"});
  writes.push_back({at.reserve, at.reserve_size, "the reserve space"});
  std::erase_if(reads, [](const Range& range) { return range.data == nullptr; });
  std::erase_if(writes, [](const Range& range) { return range.data == nullptr && range.bytes == 0; });
  all = reads;
  all.insert(all.end(), writes.begin(), writes.end());
  for (const Range& range : all)
    if (!call.in_device(range, kDnnAlignment)) return false;
  for (std::size_t w = 0; w < writes.size(); ++w) {
    std::vector<Range> others = reads;
    others.insert(others.end(), writes.begin() + static_cast<std::ptrdiff_t>(w) + 1, writes.end());
    if (!call.apart(writes[w], others)) return false;
  }
  return true;
}

// Adds an optional output.
void add_if(std::vector<Range>& ranges, void* data, std::size_t bytes, const char* name) {
  if (data) ranges.push_back({data, bytes, name});
}

// Checks that the reserve space holds what the forward pass wrote, and that nothing was written since.
void pass_on(const char* name, void* reserve, const Reserve& wanted, const Reserve& next) {
  if (std::memcmp(reserve, &wanted, sizeof wanted) != 0)
    book().broken(fmt::format("{}: the reserve space is not as the call before it left it", name));
  std::memcpy(reserve, &next, sizeof next);
}

// Only LSTM has a cell state.
bool cells(const Call& call, const Layer& l, std::initializer_list<const void*> states) {
  const bool any = std::any_of(states.begin(), states.end(), [](const void* state) { return state != nullptr; });
  return call.demand(!any || l.rnn->cell == CUDNN_LSTM, "a cell state, of which this cell has none");
}

}  // namespace
}  // namespace echelon::calls

using namespace echelon::calls;

extern "C" {

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn_desc, std::size_t* bytes) {
  STAND_IN(cudnnStatus_t);
  const auto* rnn = set_one<Rnn>(call, rnn_desc, kRnn);
  if (!dnn_of(call, handle) || !rnn || !bytes) return CUDNN_STATUS_BAD_PARAM;
  *bytes = weight_bytes(*rnn);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn_desc, cudnnForwardMode_t mode,
                                        cudnnRNNDataDescriptor_t x_desc, std::size_t* work, std::size_t* reserve) {
  STAND_IN(cudnnStatus_t);
  const auto* rnn = set_one<Rnn>(call, rnn_desc, kRnn);
  const auto* x = set_one<RnnData>(call, x_desc, kRnnData);
  if (!dnn_of(call, handle) || !rnn || !x) return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_BAD_PARAM, x->type == rnn->type && x->values == rnn->F, "x of another type or size");
  if (work) *work = work_bytes(*rnn, *x);
  if (reserve) *reserve = mode == CUDNN_FWD_MODE_TRAINING ? reserve_bytes(*rnn, *x) : 0;
  return CUDNN_STATUS_SUCCESS;
}

// Input matrices come first, then recurrent ones, then the biases in the same order; "linLayerID": 0 to 7 for LSTM, to
// 5 for GRU, to 1 for the plain cells.
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn_desc, std::int32_t layer,
                                      std::size_t space_bytes, const void* space, std::int32_t id,
                                      cudnnTensorDescriptor_t matrix_desc, void** matrix_at,
                                      cudnnTensorDescriptor_t bias_desc, void** bias_at) {
  STAND_IN(cudnnStatus_t);
  const auto* rnn = set_one<Rnn>(call, rnn_desc, kRnn);
  auto* matrix = call.find<Tensor>(matrix_desc, kTensor);
  auto* bias = call.find<Tensor>(bias_desc, kTensor);
  if (!dnn_of(call, handle) || !rnn || !matrix || !bias || !matrix_at || !bias_at) return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_BAD_PARAM, layer == 0 && id >= 0 && id < 2 * rnn->gates, "layer {}, matrix {}", layer, id);
  DEMAND(CUDNN_STATUS_BAD_PARAM, space && space_bytes >= weight_bytes(*rnn), "a weight space of {} bytes", space_bytes);
  const std::int64_t input = rnn->H * rnn->F, recurrent = rnn->H * rnn->H, size = size_of(rnn->type);
  const bool second = id >= rnn->gates;
  const std::int64_t before = second ? rnn->gates * input + (id - rnn->gates) * recurrent : id * input;
  const std::int64_t columns = second ? rnn->H : rnn->F;
  auto* first = static_cast<std::byte*>(const_cast<void*>(space));
  *matrix_at = first + before * size;
  *bias_at = first + (rnn->gates * (input + recurrent) + id * rnn->H) * size;
  const auto describe = [&](Tensor& tensor, std::int64_t rows, std::int64_t cols) {
    tensor.set = true;
    tensor.type = rnn->type;
    tensor.extents = {1, rows, cols};
    tensor.strides = {rows * cols, cols, 1};
  };
  describe(*matrix, rnn->H, columns);
  describe(*bias, rnn->H, 1);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode,
                              const std::int32_t device_lengths[], cudnnRNNDataDescriptor_t x_desc, const void* x,
                              cudnnRNNDataDescriptor_t y_desc, void* y, cudnnTensorDescriptor_t h_desc, const void* hx,
                              void* hy, cudnnTensorDescriptor_t c_desc, const void* cx, void* cy,
                              std::size_t weight_size, const void* weights, std::size_t work_size, void* work,
                              std::size_t reserve_size, void* reserve) {
  STAND_IN(cudnnStatus_t);
  DnnHandle* dnn = dnn_of(call, handle);
  const auto l = layer_of(call, rnn, x_desc, y_desc);
  if (!dnn || !l || !is_state(call, *l, h_desc, "hDesc") || !is_state(call, *l, c_desc, "cDesc") ||
      !cells(call, *l, {cx, cy}))
    return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_BAD_PARAM, mode == CUDNN_FWD_MODE_TRAINING, "the reserve space is kept in training alone");
  // "Starting with cuDNN 8.9.1, devSeqLengths is not required and may be NULL".
  DEMAND(CUDNN_STATUS_BAD_PARAM, !device_lengths, "lengths on the device");
  std::vector<Range> writes{{y, l->sequence_bytes(l->rnn->H), "y"}}, all;
  add_if(writes, hy, l->state_bytes(), "hy");
  add_if(writes, cy, l->state_bytes(), "cy");
  const std::vector<Range> reads{{x, l->sequence_bytes(l->rnn->F), "x"},
                                 {hx, l->state_bytes(), "hx"},
                                 {cx, l->state_bytes(), "cx"},
                                 {weights, weight_size, "the weight space"}};
  DEMAND(CUDNN_STATUS_BAD_PARAM, x && weights, "x or the weight space is null");
  if (!places(call, *l, {weight_size, weights, work_size, work, reserve_size, reserve}, reads, writes, all))
    return CUDNN_STATUS_BAD_PARAM;
  enqueue_on(call, *dnn->stream, all,
             [reserve, left = reserve_of(*l, 1)] { std::memcpy(reserve, &left, sizeof left); });
  return CUDNN_STATUS_SUCCESS;
}

// "This function must be called after cudnnRNNForward() in the training mode", with its reserve space.
cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                      const std::int32_t device_lengths[], cudnnRNNDataDescriptor_t y_desc,
                                      const void* y, const void* dy, cudnnRNNDataDescriptor_t x_desc, void* dx,
                                      cudnnTensorDescriptor_t h_desc, const void* hx, const void* dhy, void* dhx,
                                      cudnnTensorDescriptor_t c_desc, const void* cx, const void* dcy, void* dcx,
                                      std::size_t weight_size, const void* weights, std::size_t work_size, void* work,
                                      std::size_t reserve_size, void* reserve) {
  STAND_IN(cudnnStatus_t);
  DnnHandle* dnn = dnn_of(call, handle);
  const auto l = layer_of(call, rnn, x_desc, y_desc);
  if (!dnn || !l || !is_state(call, *l, h_desc, "hDesc") || !is_state(call, *l, c_desc, "cDesc") ||
      !cells(call, *l, {cx, dcy, dcx}))
    return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_BAD_PARAM, !device_lengths, "lengths on the device");
  DEMAND(CUDNN_STATUS_BAD_PARAM, y && dy && dx && weights, "y, dy, dx or the weight space is null");
  std::vector<Range> writes{{dx, l->sequence_bytes(l->rnn->F), "dx"}}, all;
  add_if(writes, dhx, l->state_bytes(), "dhx");
  add_if(writes, dcx, l->state_bytes(), "dcx");
  const std::vector<Range> reads{{y, l->sequence_bytes(l->rnn->H), "y"},
                                 {dy, l->sequence_bytes(l->rnn->H), "dy"},
                                 {hx, l->state_bytes(), "hx"},
                                 {dhy, l->state_bytes(), "dhy"},
                                 {cx, l->state_bytes(), "cx"},
                                 {dcy, l->state_bytes(), "dcy"},
                                 {weights, weight_size, "the weight space"}};
  if (!places(call, *l, {weight_size, weights, work_size, work, reserve_size, reserve}, reads, writes, all))
    return CUDNN_STATUS_BAD_PARAM;
  enqueue_on(call, *dnn->stream, all,
             [name = call.name(), reserve, before = reserve_of(*l, 1), after = reserve_of(*l, 2)] {
               pass_on(name, reserve, before, after);
             });
  return CUDNN_STATUS_SUCCESS;
}

// "Must be invoked after cudnnRNNBackwardData()"; "currently, only CUDNN_WGRAD_MODE_ADD is supported".
cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnWgradMode_t mode,
                                         const std::int32_t device_lengths[], cudnnRNNDataDescriptor_t x_desc,
                                         const void* x, cudnnTensorDescriptor_t h_desc, const void* hx,
                                         cudnnRNNDataDescriptor_t y_desc, const void* y, std::size_t weight_size,
                                         void* dweights, std::size_t work_size, void* work, std::size_t reserve_size,
                                         void* reserve) {
  STAND_IN(cudnnStatus_t);
  DnnHandle* dnn = dnn_of(call, handle);
  const auto l = layer_of(call, rnn, x_desc, y_desc);
  if (!dnn || !l || !is_state(call, *l, h_desc, "hDesc")) return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_NOT_SUPPORTED, mode == CUDNN_WGRAD_MODE_ADD, "mode {}", static_cast<int>(mode));
  DEMAND(CUDNN_STATUS_BAD_PARAM, !device_lengths && x && y && dweights, "lengths on the device, or null");
  std::vector<Range> all;
  const std::vector<Range> reads{
      {x, l->sequence_bytes(l->rnn->F), "x"}, {hx, l->state_bytes(), "hx"}, {y, l->sequence_bytes(l->rnn->H), "y"}};
  if (!places(call, *l, {weight_size, dweights, work_size, work, reserve_size, reserve}, reads,
              {{dweights, weight_size, "the gradient's space"}}, all))
    return CUDNN_STATUS_BAD_PARAM;
  enqueue_on(call, *dnn->stream, all,
             [name = call.name(), reserve, before = reserve_of(*l, 2)] { pass_on(name, reserve, before, before); });
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
