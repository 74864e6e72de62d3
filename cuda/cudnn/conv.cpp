// Convolution through cuDNN's classic calls, our plain kernels where the library has no deterministic algorithm.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "base/log.hpp"
#include "cuda/check.hpp"
#include "cuda/cudnn/algorithms.hpp"
#include "cuda/kernel_op.hpp"
#include "cuda/kernels/channel_sums.hpp"
#include "cuda/kernels/direct_conv.hpp"
#include "cuda/kernels/elementwise.hpp"
#include "cuda/kernels/vector.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {
namespace {

constexpr std::size_t kAlignment = 256;

// The library's kernels may load 16 bytes at once; parameters lie unpadded in their arena.
bool aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

// Extents are ints to cuDNN, and no tensor may have 2^31 elements or more.
bool fits_library(const OpSpec& spec) {
  const std::vector<ArgInfo> args = signature(spec);
  return std::all_of(args.begin(), args.end(),
                     [](const ArgInfo& arg) { return arg.shape.elems() <= std::numeric_limits<int>::max(); });
}

template <class T>
class Conv final : public Op {
 public:
  Conv(const Context& context, const OpSpec& spec)
      : context_(context), kind_(spec.kind), d_(std::get<ConvDims>(spec.dims)), text_(spec.text()) {
    weights_ = static_cast<std::size_t>(d_.K * (d_.C / d_.groups) * d_.R * d_.S);
    if (fits_library(spec)) {
      descriptors_.emplace(d_, spec.dtype);
      algorithms_ = conv_algorithms(context_, kind_, *descriptors_);
    }
    for (const Algorithm& algorithm : algorithms_)
      workspace_bytes_ = std::max(workspace_bytes_, algorithm.workspace_bytes);
    if (kind_ == OpKind::conv_backward_weights && d_.bias)
      workspace_bytes_ = std::max(workspace_bytes_, channel_scratch_bytes(d_.N, d_.K, 1));
    workspace_bytes_ = (workspace_bytes_ + kAlignment - 1) / kAlignment * kAlignment;
  }

  // The workspace, then room for the weights where theirs is not aligned.
  std::size_t scratch_bytes() const override { return workspace_bytes_ + weights_ * sizeof(T); }
  std::string implementation() const override {
    return at_ < algorithms_.size() ? fmt::format("cudnn algorithm {}", algorithms_[at_].id) : "plain kernel (ref)";
  }
  void run(const OpArgs& args) override {
    context_.use();
    if (kind_ == OpKind::conv_forward) forward(args);
    if (kind_ == OpKind::conv_backward_data) backward_data(args);
    if (kind_ == OpKind::conv_backward_weights) backward_weights(args);
    check_launch(text_);
  }

 private:
  T* staged(const OpArgs& a) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(a.scratch) + workspace_bytes_);
  }
  const T* aligned_weights(const OpArgs& a, const T* w) const {
    if (aligned(w)) return w;
    ECHELON_CUDA(cudaMemcpyAsync(staged(a), w, weights_ * sizeof(T), cudaMemcpyDeviceToDevice, context_.stream()));
    return staged(a);
  }

  // Runs `call` with the best algorithm that the library does not refuse when it comes to it; false where none is left.
  template <class Call>
  bool in_library(Call call) {
    for (; at_ < algorithms_.size(); ++at_) {
      const cudnnStatus_t status = call(algorithms_[at_]);
      if (status == CUDNN_STATUS_SUCCESS) return true;
      const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status));
      if (category != CUDNN_STATUS_NOT_SUPPORTED && category != CUDNN_STATUS_BAD_PARAM)
        check(status, text_.c_str(), __FILE__, __LINE__);
      cudaGetLastError();
      log_warning("{}: cudnn refuses algorithm {} ({}); going on with the next", text_, algorithms_[at_].id,
                  cudnnGetErrorString(status));
    }
    return false;
  }

  void forward(const OpArgs& a) {
    const T* x = tensor<const T>(a, 0);
    const T* w = aligned_weights(a, tensor<const T>(a, 1));
    T* y = tensor<T>(a, d_.bias ? 3 : 2);
    const T one = 1;
    const T zero = 0;
    const auto call = [&](const Algorithm& algorithm) {
      return cudnnConvolutionForward(context_.dnn(), &one, descriptors_->x.get(), x, descriptors_->w.get(), w,
                                     descriptors_->conv.get(), static_cast<cudnnConvolutionFwdAlgo_t>(algorithm.id),
                                     a.scratch, algorithm.workspace_bytes, &zero, descriptors_->y.get(), y);
    };
    if (!aligned(x) || !aligned(y) || !in_library(call)) direct_conv_forward(d_, x, w, y, context_.stream());
    if (d_.bias) add_bias(y, tensor<const T>(a, 2), d_.N, d_.K, d_.P() * d_.Q(), context_.stream());
  }

  void backward_data(const OpArgs& a) {
    const T* dy = tensor<const T>(a, 0);
    const T* w = aligned_weights(a, tensor<const T>(a, 1));
    T* dx = tensor<T>(a, 2);
    const T one = 1;
    const T beta = adds(a, 2) ? 1 : 0;
    const auto call = [&](const Algorithm& algorithm) {
      return cudnnConvolutionBackwardData(context_.dnn(), &one, descriptors_->w.get(), w, descriptors_->y.get(), dy,
                                          descriptors_->conv.get(),
                                          static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm.id), a.scratch,
                                          algorithm.workspace_bytes, &beta, descriptors_->x.get(), dx);
    };
    if (!aligned(dy) || !aligned(dx) || !in_library(call))
      direct_conv_backward_data(d_, dy, w, dx, adds(a, 2), context_.stream());
  }

  void backward_weights(const OpArgs& a) {
    const T* x = tensor<const T>(a, 0);
    const T* dy = tensor<const T>(a, 1);
    T* dw = tensor<T>(a, 2);
    const bool stage = !aligned(dw);
    T* target = stage ? staged(a) : dw;
    const T one = 1;
    const T beta = adds(a, 2) && !stage ? 1 : 0;
    const auto call = [&](const Algorithm& algorithm) {
      return cudnnConvolutionBackwardFilter(context_.dnn(), &one, descriptors_->x.get(), x, descriptors_->y.get(), dy,
                                            descriptors_->conv.get(),
                                            static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm.id), a.scratch,
                                            algorithm.workspace_bytes, &beta, descriptors_->w.get(), target);
    };
    if (!aligned(x) || !aligned(dy) || !in_library(call))
      direct_conv_backward_weights(d_, x, dy, dw, adds(a, 2), context_.stream());
    else if (stage && adds(a, 2))
      vector_add(dw, static_cast<const T*>(target), weights_, context_.stream());
    else if (stage)
      ECHELON_CUDA(cudaMemcpyAsync(dw, target, weights_ * sizeof(T), cudaMemcpyDeviceToDevice, context_.stream()));
    // After the convolution in the stream, so that the partial sums may take its workspace's place.
    if (d_.bias)
      bias_gradient(dy, tensor<T>(a, 3), d_.N, d_.K, d_.P() * d_.Q(), adds(a, 3), a.scratch, context_.stream());
  }

  const Context& context_;
  OpKind kind_;
  ConvDims d_;
  std::string text_;
  std::optional<ConvDescriptors> descriptors_;
  std::vector<Algorithm> algorithms_;
  std::size_t at_ = 0;  // the one in use; beyond the end: our own kernel
  std::size_t weights_ = 0;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Op> make_conv(const Context& context, const OpSpec& spec) {
  return with_float(spec.dtype,
                    [&]<class T>(T) -> std::unique_ptr<Op> { return std::make_unique<Conv<T>>(context, spec); });
}

}  // namespace echelon::cuda
