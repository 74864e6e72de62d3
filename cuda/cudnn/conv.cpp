// SPDX-License-Identifier: Apache-2.0
// Convolution through cuDNN's classic calls. If the library has no deterministic algorithm, device.allow_fallback
// permits our plain kernels; without it that is an error (device/fallback.hpp).
//
// Halves: the f32 weights of the arena are rounded and packed into scratch before each call; the library returns their
// gradient in halves, which is added to the arena's f32.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "cuda/check.hpp"
#include "cuda/cudnn/algorithms.hpp"
#include "cuda/kernel_op.hpp"
#include "cuda/kernels/channel_sums.hpp"
#include "cuda/kernels/direct_conv.hpp"
#include "cuda/kernels/elementwise.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {
namespace {

constexpr std::size_t kAlignment = 256;

template <class T>
class Conv final : public Op {
 public:
  Conv(const Context& context, const OpSpec& spec)
      : context_(context),
        kind_(spec.kind),
        d_(std::get<ConvDims>(spec.dims)),
        text_(spec.text()),
        layout_(spec.layouts[0]),
        repacks_(kHalf<T> || layout_ != Layout::plain),
        weight_shape_(d_.w()),
        weights_(static_cast<std::size_t>(weight_shape_.elems())),
        output_(channel_extents(d_.N, d_.K, d_.out().cells(), layout_)) {
    if (fits_cudnn(spec)) {
      descriptors_.emplace(d_, spec.dtype, layout_, context_.tf32());
      Ranked ranked = conv_algorithms(context_, kind_, spec.dtype, *descriptors_);
      algorithms_ = std::move(ranked.usable);
      if (algorithms_.empty()) replace_library(nothing_usable_text(context_, ranked));
    } else {
      replace_library("cuDNN does not support tensors of 2^31 elements or more");
    }
    if (!algorithms_.empty()) note_exactness(algorithms_[0]);
    for (const Algorithm& algorithm : algorithms_)
      workspace_bytes_ = std::max(workspace_bytes_, algorithm.workspace_bytes);
    if (kind_ == OpKind::conv_backward_weights && d_.bias)
      workspace_bytes_ = std::max(workspace_bytes_, channel_scratch_bytes(output_, 1));
    workspace_bytes_ = (workspace_bytes_ + kAlignment - 1) / kAlignment * kAlignment;
  }

  // The workspace, followed by memory for the weights if the library needs them in another order.
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
  using P = Wide<T>;  // type of parameters

  T* staged(const OpArgs& a) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(a.scratch) + workspace_bytes_);
  }
  // The weights in the form that the library reads: in halves, channels last, aligned.
  const T* packed_weights(const OpArgs& a, const P* w) const {
    if (repacks_) {
      reorder<P, T>(w, Layout::plain, staged(a), layout_, weight_shape_, false, context_.stream());
      return staged(a);
    }
    const T* plain = reinterpret_cast<const T*>(w);
    if (aligned(w)) return plain;
    ECHELON_CUDA(cudaMemcpyAsync(staged(a), w, weights_ * sizeof(T), cudaMemcpyDeviceToDevice, context_.stream()));
    return staged(a);
  }

  void replace_library(const std::string& reason) const {
    context_.fallbacks().replace(text_, reason, "a plain loop of sums in double, which is many times slower");
  }
  void note_exactness(const Algorithm& algorithm) const {
    if (!algorithm.exact)
      context_.fallbacks().note(text_, fmt::format("the best deterministic algorithm of cuDNN, {}, is two or three "
                                                   "digits less exact than plain sums",
                                                   algorithm.id));
  }

  // Runs `call` with the best algorithm that the library does not refuse at run time; returns false if none is left.
  template <class Call>
  bool in_library(Call call) {
    for (; at_ < algorithms_.size(); ++at_) {
      const cudnnStatus_t status = call(algorithms_[at_]);
      if (status == CUDNN_STATUS_SUCCESS) return true;
      const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status));
      if (category != CUDNN_STATUS_NOT_SUPPORTED && category != CUDNN_STATUS_BAD_PARAM)
        check(status, text_.c_str(), __FILE__, __LINE__);
      cudaGetLastError();
      const std::string refused =
          fmt::format("cuDNN refused algorithm {} at run time ({})", algorithms_[at_].id, cudnnGetErrorString(status));
      if (at_ + 1 == algorithms_.size()) {
        replace_library(refused);
      } else {
        context_.fallbacks().note(text_, refused + "; the next algorithm is used");
        note_exactness(algorithms_[at_ + 1]);
      }
    }
    return false;
  }

  bool library(const void* one, const void* other) const {
    if (at_ == algorithms_.size()) return false;
    if (aligned(one) && aligned(other)) return true;
    replace_library("its images do not begin at a multiple of 16 bytes");
    return false;
  }

  void forward(const OpArgs& a) {
    const T* x = tensor<const T>(a, 0);
    const P* weights = tensor<const P>(a, 1);
    T* y = tensor<T>(a, d_.bias ? 3 : 2);
    const T* w = library(x, y) ? packed_weights(a, weights) : nullptr;
    const P one = 1;
    const P zero = 0;
    const auto call = [&](const Algorithm& algorithm) {
      return cudnnConvolutionForward(context_.dnn(), &one, descriptors_->x.get(), x, descriptors_->w.get(), w,
                                     descriptors_->conv.get(), static_cast<cudnnConvolutionFwdAlgo_t>(algorithm.id),
                                     a.scratch, algorithm.workspace_bytes, &zero, descriptors_->y.get(), y);
    };
    if (!w || !in_library(call)) direct_conv_forward(d_, layout_, x, weights, y, context_.stream());
    if (d_.bias) add_bias(y, tensor<const P>(a, 2), output_, context_.stream());
  }

  void backward_data(const OpArgs& a) {
    const T* dy = tensor<const T>(a, 0);
    const P* weights = tensor<const P>(a, 1);
    T* dx = tensor<T>(a, 2);
    const T* w = library(dy, dx) ? packed_weights(a, weights) : nullptr;
    const P one = 1;
    const P beta = adds(a, 2) ? 1 : 0;
    const auto call = [&](const Algorithm& algorithm) {
      return cudnnConvolutionBackwardData(context_.dnn(), &one, descriptors_->w.get(), w, descriptors_->y.get(), dy,
                                          descriptors_->conv.get(),
                                          static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm.id), a.scratch,
                                          algorithm.workspace_bytes, &beta, descriptors_->x.get(), dx);
    };
    if (!w || !in_library(call)) direct_conv_backward_data(d_, layout_, dy, weights, dx, adds(a, 2), context_.stream());
  }

  void backward_weights(const OpArgs& a) {
    const T* x = tensor<const T>(a, 0);
    const T* dy = tensor<const T>(a, 1);
    P* dw = tensor<P>(a, 2);
    const bool stage = repacks_ || !aligned(dw);
    void* target = stage ? static_cast<void*>(staged(a)) : dw;
    const P one = 1;
    const P beta = adds(a, 2) && !stage ? 1 : 0;
    const auto call = [&](const Algorithm& algorithm) {
      return cudnnConvolutionBackwardFilter(context_.dnn(), &one, descriptors_->x.get(), x, descriptors_->y.get(), dy,
                                            descriptors_->conv.get(),
                                            static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm.id), a.scratch,
                                            algorithm.workspace_bytes, &beta, descriptors_->w.get(), target);
    };
    if (!library(x, dy) || !in_library(call))
      direct_conv_backward_weights(d_, layout_, x, dy, dw, adds(a, 2), context_.stream());
    else if (stage)
      reorder<T, P>(staged(a), layout_, dw, Layout::plain, weight_shape_, adds(a, 2), context_.stream());
    // Comes after the convolution in the stream, so that the partial sums may use its workspace.
    if (d_.bias) bias_gradient(dy, tensor<P>(a, 3), output_, adds(a, 3), a.scratch, context_.stream());
  }

  const Context& context_;
  OpKind kind_;
  ConvDims d_;
  std::string text_;
  Layout layout_;        // layout of images
  bool repacks_;         // the library needs the weights in an order other than the arena's
  Shape weight_shape_;   // (K, C/groups, kernel)
  std::size_t weights_;  // elements
  ChannelExtents output_;
  std::optional<ConvDescriptors> descriptors_;
  std::vector<Algorithm> algorithms_;
  std::size_t at_ = 0;  // index of the algorithm in use; beyond the end: our own kernel
  std::size_t workspace_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Op> make_conv(const Context& context, const OpSpec& spec) {
  return with_type(spec.dtype,
                   [&]<class T>(T) -> std::unique_ptr<Op> { return std::make_unique<Conv<T>>(context, spec); });
}

}  // namespace echelon::cuda
