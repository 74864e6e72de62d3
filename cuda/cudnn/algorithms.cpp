#include "cuda/cudnn/algorithms.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace echelon::cuda {
namespace {

// `get` is the library's ranking, `size` an algorithm's workspace: an error there means that it cannot run
// these shapes. Accepted algorithms that the ranking leaves out follow in the order given.
template <class Perf, class Algo, class Get, class Size>
std::vector<Algorithm> choose(std::vector<Algo> accepted, Get get, Size size) {
  std::array<Perf, 16> ranking{};
  int count = 0;
  if (get(static_cast<int>(ranking.size()), &count, ranking.data()) != CUDNN_STATUS_SUCCESS) count = 0;
  auto next = accepted.begin();
  for (int i = 0; i < count; ++i) {
    const Perf& perf = ranking[static_cast<std::size_t>(i)];
    if (perf.status != CUDNN_STATUS_SUCCESS || perf.determinism != CUDNN_DETERMINISTIC) continue;
    const auto found = std::find(next, accepted.end(), perf.algo);
    if (found == accepted.end()) continue;
    std::rotate(next, found, found + 1);
    ++next;
  }
  std::vector<Algorithm> usable;
  for (const Algo algo : accepted) {
    std::size_t bytes = 0;
    if (size(algo, &bytes) == CUDNN_STATUS_SUCCESS && bytes <= kWorkspaceCapBytes)
      usable.push_back({static_cast<int>(algo), bytes});
  }
  return usable;
}

template <class Algo>
std::vector<Algo> with_if(std::vector<Algo> all, bool wanted, Algo more) {
  if (wanted) all.push_back(more);
  return all;
}

}  // namespace

std::vector<Algorithm> conv_algorithms(const Context& context, OpKind kind, DType dtype, const ConvDescriptors& of) {
  const bool winograd = !is_half(dtype);
  const cudnnHandle_t dnn = context.dnn();
  const auto x = of.x.get();
  const auto y = of.y.get();
  const auto w = of.w.get();
  const auto conv = of.conv.get();
  if (kind == OpKind::conv_forward)
    return choose<cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t>(
        with_if<cudnnConvolutionFwdAlgo_t>({CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                            CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_GEMM},
                                           winograd, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD),
        [&](int most, int* count, auto* ranking) {
          return cudnnGetConvolutionForwardAlgorithm_v7(dnn, x, w, conv, y, most, count, ranking);
        },
        [&](auto algo, std::size_t* bytes) {
          return cudnnGetConvolutionForwardWorkspaceSize(dnn, x, w, conv, y, algo, bytes);
        });
  if (kind == OpKind::conv_backward_data)
    return choose<cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t>(
        with_if<cudnnConvolutionBwdDataAlgo_t>({CUDNN_CONVOLUTION_BWD_DATA_ALGO_1}, winograd,
                                               CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD),
        [&](int most, int* count, auto* ranking) {
          return cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn, w, y, conv, x, most, count, ranking);
        },
        [&](auto algo, std::size_t* bytes) {
          return cudnnGetConvolutionBackwardDataWorkspaceSize(dnn, w, y, conv, x, algo, bytes);
        });
  return choose<cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t>(
      {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1},
      [&](int most, int* count, auto* ranking) {
        return cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn, x, y, conv, w, most, count, ranking);
      },
      [&](auto algo, std::size_t* bytes) {
        return cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn, x, y, conv, w, algo, bytes);
      });
}

Layout half_conv_layout(const Context& context, const OpSpec& spec) {
  if (!fits_cudnn(spec)) return Layout::plain;
  const ConvDescriptors last(std::get<ConvDims>(spec.dims), spec.dtype, Layout::channels_last, context.tf32());
  return conv_algorithms(context, spec.kind, spec.dtype, last).empty() ? Layout::plain : Layout::channels_last;
}

bool fits_cudnn(const OpSpec& spec) {
  const std::vector<ArgInfo> args = signature(spec);
  return std::all_of(args.begin(), args.end(),
                     [](const ArgInfo& arg) { return arg.shape.elems() <= std::numeric_limits<int>::max(); });
}

}  // namespace echelon::cuda
