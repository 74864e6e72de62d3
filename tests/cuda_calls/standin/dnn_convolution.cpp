// SPDX-License-Identifier: Apache-2.0
// Convolutions: cuDNN 9 API, "cudnn_cnn Library": cudnnConvolutionForward, .. and the questions before them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "tests/cuda_calls/standin/dnn.hpp"

namespace echelon::calls {
namespace {

enum Direction { kForward, kData, kWeights };

// One convolution as described by its four descriptors.
struct Problem {
  const Tensor *x = nullptr, *y = nullptr;
  const Filter* w = nullptr;
  const Convolution* conv = nullptr;
  bool last = false;  // channels last

  std::string text() const {
    return fmt::format("{} {} {} {} {} {} {} {} {} {}", static_cast<int>(x->type), fmt::join(x->extents, ","),
                       fmt::join(y->extents, ","), fmt::join(w->extents, ","), fmt::join(conv->pads, ","),
                       fmt::join(conv->strides, ","), fmt::join(conv->dilations, ","), conv->groups, last,
                       static_cast<int>(conv->math));
  }
};

std::int64_t product(const std::vector<std::int64_t>& values, std::size_t first) {
  return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(first), values.end(), std::int64_t{1},
                         std::multiplies<>());
}
std::int64_t places(const Tensor& tensor) { return product(tensor.extents, 2); }
bool any_above_1(const std::vector<std::int64_t>& values) {
  return std::any_of(values.begin(), values.end(), [](std::int64_t value) { return value > 1; });
}

bool channels_last(const Tensor& tensor) { return tensor.extents[1] > 1 && tensor.strides[1] == 1; }

// With one channel, or one place, the layouts cannot be distinguished.
bool same_layout(const Tensor& tensor, bool last) {
  const bool either = tensor.extents[1] == 1 || places(tensor) == 1;
  return either || channels_last(tensor) == last;
}

// "Data Type Configurations": PSEUDO_HALF, PSEUDO_BFLOAT16, FLOAT, DOUBLE; for halves, only sums in f32 are exact.
bool is_configuration(cudnnDataType_t type, cudnnDataType_t sums) {
  if (type == CUDNN_DATA_DOUBLE) return sums == CUDNN_DATA_DOUBLE;
  return sums == CUDNN_DATA_FLOAT;
}

std::optional<Problem> problem_of(const Call& call, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                  cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y) {
  const Problem p{set_one<Tensor>(call, x, kTensor), set_one<Tensor>(call, y, kTensor),
                  set_one<Filter>(call, w, kFilter), set_one<Convolution>(call, conv, kConvolution)};
  if (!p.x || !p.y || !p.w || !p.conv) return {};
  const auto demand = [&](bool holds, const std::string& rule) { return call.demand(holds, "{}", rule); };
  // "xDesc, wDesc, yDesc have a non-matching number of dimensions", ".. data type".
  bool ok = demand(p.x->extents.size() == p.conv->pads.size() + 2 && p.y->extents.size() == p.x->extents.size() &&
                       p.w->extents.size() == p.x->extents.size(),
                   "tensors are of different numbers of dimensions");
  if (!ok) return {};
  const std::int64_t N = p.x->extents[0], C = p.x->extents[1];
  ok = demand(p.x->type == p.w->type && p.x->type == p.y->type, "x, w and y are of different types") && ok;
  ok = demand(is_configuration(p.x->type, p.conv->type), "data and sums are of no supported types") && ok;
  // Tensor cores are for halves, FMA is for f32 ("cudnnMathType_t").
  ok = demand(size_of(p.x->type) == 2 || p.conv->math != CUDNN_TENSOR_OP_MATH, "tensor cores for f32 or f64") && ok;
  // "non-matching number of input feature maps per image (or group in case of grouped convolutions)".
  ok = demand(C == p.w->extents[1] * p.conv->groups, "the channels of x are not groups times those of w") && ok;
  // "an output channel count that isn't a multiple of group count".
  ok = demand(p.w->extents[0] % p.conv->groups == 0, "the channels of y are no multiple of the groups") && ok;
  std::vector<std::int64_t> output{N, p.w->extents[0]};
  for (std::size_t d = 0; d < p.conv->pads.size(); ++d) {
    const std::int64_t window = (p.w->extents[2 + d] - 1) * p.conv->dilations[d] + 1;
    const std::int64_t room = p.x->extents[2 + d] + 2 * p.conv->pads[d] - window;
    // "wDesc has a spatial size that is larger than the input spatial size (including zero-padding size)".
    ok = demand(room >= 0, "a window larger than its padded image") && ok;
    output.push_back(1 + room / p.conv->strides[d]);
  }
  // "spatial sizes do not match with the expected size as determined by cudnnGetConvolutionNdForwardOutputDim()".
  ok = demand(std::equal(output.begin(), output.end(), p.y->extents.begin()),
              fmt::format("y is {}, the convolution's output is {}", fmt::join(p.y->extents, "x"),
                          fmt::join(output, "x"))) &&
       ok;
  // "Supported Algorithms": x, w and y are all NCHW or all NHWC.
  ok =
      demand(same_layout(*p.x, p.w->last) && same_layout(*p.y, p.w->last), "x, w and y are of different layouts") && ok;
  if (!ok) return {};
  Problem whole = p;
  whole.last = p.w->last;
  return whole;
}

// Whether the stand-in runs the algorithm on this problem. "Supported Algorithms" lists for all GPUs: dilation only
// with implicit GEMM and the data gradient's algorithm 0; Winograd for windows of 3x3 at stride 1 in f32 and f16,
// plain. Beyond that a library may answer anything, and its caller has to cope with it.
bool runs(Direction direction, int algo, const Problem& p) {
  const bool dilated = any_above_1(p.conv->dilations);
  const bool unit = !any_above_1(p.conv->strides) && !dilated;
  const bool winograd = unit && !p.last && p.conv->pads.size() == 2 && p.w->extents[2] == 3 && p.w->extents[3] == 3 &&
                        (p.x->type == CUDNN_DATA_FLOAT || p.x->type == CUDNN_DATA_HALF);
  if (direction == kForward) {
    if (algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM) return true;
    if (algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) return !dilated;
    if (algo == CUDNN_CONVOLUTION_FWD_ALGO_GEMM) return !dilated && !p.last;
    return algo == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD && winograd;
  }
  if (direction == kData) {
    if (algo == CUDNN_CONVOLUTION_BWD_DATA_ALGO_0) return true;
    if (algo == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1) return !dilated;
    return algo == CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD && winograd;
  }
  if (algo == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0) return true;
  return algo == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 && !dilated;
}

bool refused(Direction direction, int algo) { return (book().settings().refused >> (16 * direction + algo) & 1) != 0; }

// Large compared with the tensors for the algorithm that writes out its windows.
std::size_t workspace_of(Direction direction, int algo, const Problem& p) {
  const std::size_t windows = bytes_of(*p.w) / static_cast<std::size_t>(p.w->extents[0]);
  if (direction == kForward && algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM) return 0;
  if (direction == kForward && algo == CUDNN_CONVOLUTION_FWD_ALGO_GEMM)
    return windows * static_cast<std::size_t>(p.y->extents[0] * places(*p.y));
  return windows * static_cast<std::size_t>(8 + algo) + 24;
}

template <class Perf, class Algo>
cudnnStatus_t rank(const Call& call, Direction direction, cudnnHandle_t handle, const std::optional<Problem>& problem,
                   int wanted, int* count, Perf* perf, const std::vector<std::pair<Algo, bool>>& all) {
  if (!dnn_of(call, handle) || !problem) return CUDNN_STATUS_BAD_PARAM;
  // "requestedAlgoCount is less than or equal to 0".
  DEMAND(CUDNN_STATUS_BAD_PARAM, count && perf && wanted > 0, "room for {} results", wanted);
  *count = 0;
  for (const auto& [algo, deterministic] : all) {
    if (*count == wanted) break;
    const bool good = runs(direction, algo, *problem) && (book().settings().refused_late || !refused(direction, algo));
    perf[*count] = {};
    perf[*count].algo = algo;
    perf[*count].status = good ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
    perf[*count].time = -1;
    perf[*count].memory = good ? workspace_of(direction, algo, *problem) : 0;
    perf[*count].determinism = deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
    ++*count;
  }
  return CUDNN_STATUS_SUCCESS;
}

std::string key_of(Direction direction, int algo, const Problem& p) {
  return fmt::format("{} {} {}", static_cast<int>(direction), algo, p.text());
}

cudnnStatus_t tell_size(const Call& call, Direction direction, cudnnHandle_t handle,
                        const std::optional<Problem>& problem, int algo, std::size_t* bytes) {
  DnnHandle* dnn = dnn_of(call, handle);
  if (!dnn || !problem || !call.demand(bytes != nullptr, "null")) return CUDNN_STATUS_BAD_PARAM;
  if (!runs(direction, algo, *problem) || (!book().settings().refused_late && refused(direction, algo)))
    return CUDNN_STATUS_NOT_SUPPORTED;
  *bytes = workspace_of(direction, algo, *problem);
  dnn->answered.insert(key_of(direction, algo, *problem));
  return CUDNN_STATUS_SUCCESS;
}

// "Scaling parameters": float for data of f32 and halves, double for f64. A value of the wrong type reads as nonsense.
bool scaling(const Call& call, const Problem& p, const void* alpha, const void* beta) {
  if (!call.demand(alpha && beta, "alpha or beta is null")) return false;
  const auto value = [&](const void* at) {
    if (p.x->type == CUDNN_DATA_DOUBLE) return *static_cast<const double*>(at);
    return static_cast<double>(*static_cast<const float*>(at));
  };
  return call.demand(value(alpha) == 1 && (value(beta) == 0 || value(beta) == 1), "alpha {} and beta {}", value(alpha),
                     value(beta));
}

struct Operands {
  Range in, other, out;  // `other` is w, except for the gradient of w
};

cudnnStatus_t run(const Call& call, Direction direction, cudnnHandle_t handle, const std::optional<Problem>& problem,
                  int algo, const void* alpha, const void* beta, const Operands& at, void* workspace,
                  std::size_t workspace_bytes) {
  DnnHandle* dnn = dnn_of(call, handle);
  if (!dnn || !problem || !scaling(call, *problem, alpha, beta)) return CUDNN_STATUS_BAD_PARAM;
  DEMAND(CUDNN_STATUS_NOT_SUPPORTED, dnn->answered.count(key_of(direction, algo, *problem)) == 1,
         "the workspace of algorithm {} was not asked for, or told not to be supported", algo);
  if (refused(direction, algo)) return CUDNN_STATUS_NOT_SUPPORTED;
  const std::size_t needed = workspace_of(direction, algo, *problem);
  DEMAND(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, workspace_bytes >= needed, "a workspace of {} bytes, {} are needed",
         workspace_bytes, needed);
  const Range work{needed > 0 ? workspace : nullptr, needed > 0 ? workspace_bytes : 0, "the workspace"};
  for (const Range& range : {at.in, at.other, at.out, work})
    if (!call.in_device(range, kDnnAlignment)) return CUDNN_STATUS_BAD_PARAM;
  if (!call.apart(at.out, {at.in, at.other, work}) || !call.apart(work, {at.in, at.other}))
    return CUDNN_STATUS_BAD_PARAM;
  enqueue_on(call, *dnn->stream, {at.in, at.other, at.out, work});
  return CUDNN_STATUS_SUCCESS;
}

Range of(const std::optional<Problem>& p, const Tensor* Problem::*tensor, const void* data, const char* name) {
  return {data, p ? bytes_of(*((*p).*tensor)) : 0, name};
}
Range weights_of(const std::optional<Problem>& p, const void* data, const char* name) {
  return {data, p ? bytes_of(*p->w) : 0, name};
}

}  // namespace
}  // namespace echelon::calls

using namespace echelon::calls;

extern "C" {

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t conv,
                                                     const cudnnTensorDescriptor_t y, const int wanted, int* count,
                                                     cudnnConvolutionFwdAlgoPerf_t* perf) {
  STAND_IN(cudnnStatus_t);
  return rank<cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t>(
      call, kForward, handle, problem_of(call, x, w, conv, y), wanted, count, perf,
      {{CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, true},
       {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, true},
       {CUDNN_CONVOLUTION_FWD_ALGO_FFT, true},
       {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, true},
       {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, true}});
}

// "cudnnConvolutionBwdDataAlgo_t": algorithm 0 "uses atomic adds", "the results are non-deterministic".
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
                                                          const cudnnTensorDescriptor_t dy,
                                                          const cudnnConvolutionDescriptor_t conv,
                                                          const cudnnTensorDescriptor_t dx, const int wanted,
                                                          int* count, cudnnConvolutionBwdDataAlgoPerf_t* perf) {
  STAND_IN(cudnnStatus_t);
  return rank<cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t>(
      call, kData, handle, problem_of(call, dx, w, conv, dy), wanted, count, perf,
      {{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, false},
       {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, true},
       {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, true}});
}

// "cudnnConvolutionBwdFilterAlgo_t": the same applies to algorithms 0 and 3.
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                            const cudnnTensorDescriptor_t dy,
                                                            const cudnnConvolutionDescriptor_t conv,
                                                            const cudnnFilterDescriptor_t dw, const int wanted,
                                                            int* count, cudnnConvolutionBwdFilterAlgoPerf_t* perf) {
  STAND_IN(cudnnStatus_t);
  return rank<cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t>(
      call, kWeights, handle, problem_of(call, x, dw, conv, dy), wanted, count, perf,
      {{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, false}, {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, true}});
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t conv,
                                                      const cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algo,
                                                      std::size_t* bytes) {
  STAND_IN(cudnnStatus_t);
  return tell_size(call, kForward, handle, problem_of(call, x, w, conv, y), algo, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
                                                           const cudnnTensorDescriptor_t dy,
                                                           const cudnnConvolutionDescriptor_t conv,
                                                           const cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algo, std::size_t* bytes) {
  STAND_IN(cudnnStatus_t);
  return tell_size(call, kData, handle, problem_of(call, dx, w, conv, dy), algo, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                             const cudnnTensorDescriptor_t dy,
                                                             const cudnnConvolutionDescriptor_t conv,
                                                             const cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t algo, std::size_t* bytes) {
  STAND_IN(cudnnStatus_t);
  return tell_size(call, kWeights, handle, problem_of(call, x, dw, conv, dy), algo, bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                      const void* x, const cudnnFilterDescriptor_t w_desc, const void* w,
                                      const cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t algo,
                                      void* workspace, std::size_t workspace_bytes, const void* beta,
                                      const cudnnTensorDescriptor_t y_desc, void* y) {
  STAND_IN(cudnnStatus_t);
  const auto p = problem_of(call, x_desc, w_desc, conv, y_desc);
  return run(call, kForward, handle, p, algo, alpha, beta,
             {of(p, &Problem::x, x, "x"), weights_of(p, w, "w"), of(p, &Problem::y, y, "y")}, workspace,
             workspace_bytes);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t w_desc, const void* w,
                                           const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const cudnnConvolutionDescriptor_t conv, cudnnConvolutionBwdDataAlgo_t algo,
                                           void* workspace, std::size_t workspace_bytes, const void* beta,
                                           const cudnnTensorDescriptor_t dx_desc, void* dx) {
  STAND_IN(cudnnStatus_t);
  const auto p = problem_of(call, dx_desc, w_desc, conv, dy_desc);
  return run(call, kData, handle, p, algo, alpha, beta,
             {of(p, &Problem::y, dy, "dy"), weights_of(p, w, "w"), of(p, &Problem::x, dx, "dx")}, workspace,
             workspace_bytes);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t x_desc, const void* x,
                                             const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                             const cudnnConvolutionDescriptor_t conv,
                                             cudnnConvolutionBwdFilterAlgo_t algo, void* workspace,
                                             std::size_t workspace_bytes, const void* beta,
                                             const cudnnFilterDescriptor_t dw_desc, void* dw) {
  STAND_IN(cudnnStatus_t);
  const auto p = problem_of(call, x_desc, dw_desc, conv, dy_desc);
  return run(call, kWeights, handle, p, algo, alpha, beta,
             {of(p, &Problem::x, x, "x"), of(p, &Problem::y, dy, "dy"), weights_of(p, dw, "dw")}, workspace,
             workspace_bytes);
}

}  // extern "C"
