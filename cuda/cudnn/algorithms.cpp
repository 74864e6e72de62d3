// SPDX-License-Identifier: Apache-2.0
#include "cuda/cudnn/algorithms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/text.hpp"

namespace echelon::cuda {
namespace {

// `get` returns the library's ranking and `size` an algorithm's workspace; an error of `size` means that the library
// cannot run these shapes. If the ranking fails, `accepted` defines the order.
template <class Perf, class Algo, class Get, class Size>
Ranked choose(const Accepted& accepted, std::size_t limit_bytes, Get get, Size size) {
  std::array<Perf, 16> perfs{};
  int count = 0;
  if (get(static_cast<int>(perfs.size()), &count, perfs.data()) != CUDNN_STATUS_SUCCESS) count = 0;
  std::vector<int> ranking;
  for (int i = 0; i < count; ++i)
    if (const Perf& perf = perfs[static_cast<std::size_t>(i)];
        perf.status == CUDNN_STATUS_SUCCESS && perf.determinism == CUDNN_DETERMINISTIC)
      ranking.push_back(static_cast<int>(perf.algo));
  const auto workspace_of = [&](int id) -> std::optional<std::size_t> {
    std::size_t bytes = 0;
    if (size(static_cast<Algo>(id), &bytes) != CUDNN_STATUS_SUCCESS) return {};
    return bytes;
  };
  return rank_algorithms(accepted, ranking, workspace_of, limit_bytes);
}

Accepted accepted_algorithms(OpKind kind, DType dtype) {
  Accepted all;
  int winograd = -1;
  if (kind == OpKind::conv_forward) {
    all.exact = {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                 CUDNN_CONVOLUTION_FWD_ALGO_GEMM};
    all.inexact = {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING,
                   CUDNN_CONVOLUTION_FWD_ALGO_FFT};
    winograd = CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD;
  } else if (kind == OpKind::conv_backward_data) {
    all.exact = {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1};
    all.inexact = {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING,
                   CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT};
    winograd = CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD;
  } else {
    all.exact = {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1};
    all.inexact = {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING,
                   CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT};
  }
  if (winograd >= 0) (is_half(dtype) ? all.inexact : all.exact).push_back(winograd);
  return all;
}

}  // namespace

Ranked conv_algorithms(const Context& context, OpKind kind, DType dtype, const ConvDescriptors& of) {
  const Accepted accepted = accepted_algorithms(kind, dtype);
  const auto limit = static_cast<std::size_t>(context.card().options().workspace_bytes);
  const cudnnHandle_t dnn = context.dnn();
  const auto x = of.x.get();
  const auto y = of.y.get();
  const auto w = of.w.get();
  const auto conv = of.conv.get();
  if (kind == OpKind::conv_forward)
    return choose<cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t>(
        accepted, limit,
        [&](int most, int* count, auto* ranking) {
          return cudnnGetConvolutionForwardAlgorithm_v7(dnn, x, w, conv, y, most, count, ranking);
        },
        [&](auto algo, std::size_t* bytes) {
          return cudnnGetConvolutionForwardWorkspaceSize(dnn, x, w, conv, y, algo, bytes);
        });
  if (kind == OpKind::conv_backward_data)
    return choose<cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t>(
        accepted, limit,
        [&](int most, int* count, auto* ranking) {
          return cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn, w, y, conv, x, most, count, ranking);
        },
        [&](auto algo, std::size_t* bytes) {
          return cudnnGetConvolutionBackwardDataWorkspaceSize(dnn, w, y, conv, x, algo, bytes);
        });
  return choose<cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t>(
      accepted, limit,
      [&](int most, int* count, auto* ranking) {
        return cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn, x, y, conv, w, most, count, ranking);
      },
      [&](auto algo, std::size_t* bytes) {
        return cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn, x, y, conv, w, algo, bytes);
      });
}

std::string nothing_usable_text(const Context& context, const Ranked& ranked) {
  if (ranked.above_limit.empty()) return "cuDNN has no deterministic algorithm for this op";
  const auto least =
      std::min_element(ranked.above_limit.begin(), ranked.above_limit.end(),
                       [](const Algorithm& a, const Algorithm& b) { return a.workspace_bytes < b.workspace_bytes; });
  return fmt::format("algorithm {} of cuDNN needs {} of workspace, which is above device.workspace_mb = {}", least->id,
                     bytes_text(static_cast<double>(least->workspace_bytes)),
                     context.card().options().workspace_bytes >> 20);
}

Layout half_conv_layout(const Context& context, const OpSpec& spec) {
  // Volumes have no channels-last descriptor here.
  if (!fits_cudnn(spec) || std::get<ConvDims>(spec.dims).in.rank > 2) return Layout::plain;
  const ConvDescriptors last(std::get<ConvDims>(spec.dims), spec.dtype, Layout::channels_last, context.tf32());
  const Ranked ranked = conv_algorithms(context, spec.kind, spec.dtype, last);
  if (!ranked.usable.empty()) return Layout::channels_last;
  context.fallbacks().note(spec.text(),
                           nothing_usable_text(context, ranked) + " in channels-last layout; it uses the plain layout");
  return Layout::plain;
}

bool fits_cudnn(const OpSpec& spec) {
  const std::vector<ArgInfo> args = signature(spec);
  return std::all_of(args.begin(), args.end(),
                     [](const ArgInfo& arg) { return arg.shape.elems() <= std::numeric_limits<int>::max(); });
}

}  // namespace echelon::cuda
