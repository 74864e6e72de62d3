// SPDX-License-Identifier: Apache-2.0
// Convolutions whose windows do not overlap as matrix products (conv_windows.hpp).
//
// The gradient of the data of 1x1 convolutions of images with channels last: on matrix units the library's products are
// 1.3 to 6 times as fast as its backward convolutions for such kernels; its forward convolution is as fast as a
// product. All directions of strided volumes, for which the library has no code that is both fast and right: the ops of
// dense layers compute them.
#include <algorithm>

#include "device/onednn/conv_windows.hpp"
#include "device/onednn/ops.hpp"
#include "device/onednn/primitive.hpp"

namespace echelon::inline device::onednn {
namespace {

using Desc = dnnl::memory::desc;
constexpr auto kF32 = dnnl::memory::data_type::f32, kBf16 = dnnl::memory::data_type::bf16;
constexpr auto kRows = dnnl::memory::format_tag::ab;

// c = a b, or c += a b.
class Matmul {
 public:
  Matmul(const Context& context, const Desc& a, const Desc& b, const Desc& c, ScratchPlan& plan)
      : set_(describe(context, a, b, c, false)),
        add_(describe(context, a, b, c, true)),
        scratchpad_(plan.take(std::max(set_.scratchpad_desc().get_size(), add_.scratchpad_desc().get_size()))),
        setting_(body(context, set_)),
        adding_(body(context, add_)) {}

  std::string implementation() const { return set_.impl_info_str(); }
  Desc weights() const { return set_.weights_desc(); }
  void run(const void* a, const void* b, void* c, bool add, std::byte* scratch) {
    (add ? adding_ : setting_).run({a, b, c, scratch + scratchpad_});
  }

 private:
  using Made = dnnl::matmul::primitive_desc;
  static Made describe(const Context& context, const Desc& a, const Desc& b, const Desc& c, bool add) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (add) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    return described<dnnl::matmul>(context.engine, attributes, a, b, c);
  }
  static Primitive body(const Context& context, const Made& made) {
    return {context,
            dnnl::matmul(made),
            {{DNNL_ARG_SRC, made.src_desc()},
             {DNNL_ARG_WEIGHTS, made.weights_desc()},
             {DNNL_ARG_DST, made.dst_desc()},
             {DNNL_ARG_SCRATCHPAD, made.scratchpad_desc()}}};
  }

  Made set_, add_;
  std::size_t scratchpad_;
  Primitive setting_, adding_;
};

// dx (pixels, C) = dy (pixels, K) w (K, C)
class PointBackwardData final : public Op {
 public:
  PointBackwardData(const Context& context, const ConvDims& d)
      : met_(WindowRows::of_x(d, Layout::channels_last, context.threads)),
        product_(context, {{met_.rows(), d.K}, kBf16, kRows}, {{d.K, d.C}, kBf16, dnnl::memory::format_tag::any},
                 {{met_.rows(), d.C}, kBf16, kRows}, plan_),
        weights_(context, {{d.K, d.C}, kF32, kRows}, product_.weights(), kHalves),
        rows_(met_.in_place() ? 0 : plan_.take(static_cast<std::size_t>(met_.elems()) * sizeof(BHalf))) {}

  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  std::string implementation() const override { return product_.implementation() + " as a product"; }
  void run(const OpArgs& args) override {
    std::byte* scratch = ScratchPlan::align(args.scratch);
    const bool add = (args.accumulate & 4U) != 0;
    auto* dx = static_cast<BHalf*>(args.tensors[2]);
    auto* rows = reinterpret_cast<BHalf*>(scratch + rows_);
    const void* w = weights_.get(args.tensors[1], args.parameter_version);
    product_.run(args.tensors[0], w, met_.in_place() ? dx : rows, add && met_.in_place(), scratch);
    if (!met_.in_place()) met_.scatter(rows, dx, add);
  }

 private:
  ScratchPlan plan_;
  WindowRows met_;
  Matmul product_;
  PackedWeights weights_;
  std::size_t rows_;
};

// Any direction: T is float or BHalf.
//
//   y (windows, K) = x (windows, cells C) w (K, cells C)^T + b
template <class T>
class WindowConv final : public Op {
 public:
  WindowConv(const OpSpec& spec, const WindowRows& x, const WindowRows& y, const Context& context,
             std::unique_ptr<Op> dense)
      : kind_(spec.kind),
        d_(std::get<ConvDims>(spec.dims)),
        x_(x),
        y_(y),
        dense_(std::move(dense)),
        weights_(context, plain(), by_cell()),
        unpack_(make_reorder(context, by_cell(), plain())),
        add_(make_reorder(context, by_cell(), plain(), true)),
        x_rows_(rows_of(x_)),
        y_rows_(rows_of(y_)),
        gradient_(plan_.take(static_cast<std::size_t>(d_.weights()) * sizeof(float))),
        inner_(plan_.take(dense_->scratch_bytes())) {}

  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  std::string implementation() const override { return dense_->implementation() + " of windows"; }

  void run(const OpArgs& args) override {
    std::byte* scratch = ScratchPlan::align(args.scratch);
    const auto at = [&](int a) { return static_cast<T*>(args.tensors[a]); };
    const bool adds = (args.accumulate & 4U) != 0;
    void* tensors[4] = {};
    OpArgs inner = args;
    inner.tensors = tensors;
    inner.scratch = scratch + inner_;
    switch (kind_) {
      case OpKind::conv_forward: {
        T* y = at(d_.bias ? 3 : 2);
        tensors[0] = gathered(x_, at(0), scratch + x_rows_), tensors[1] = weights(args);
        tensors[2] = args.tensors[2];
        tensors[d_.bias ? 3 : 2] = y_.in_place() ? y : reinterpret_cast<T*>(scratch + y_rows_);
        dense_->run(inner);
        if (!y_.in_place()) y_.scatter(reinterpret_cast<T*>(scratch + y_rows_), y, false);
        return;
      }
      case OpKind::conv_backward_data: {
        auto* rows = reinterpret_cast<T*>(scratch + x_rows_);
        tensors[0] = gathered(y_, at(0), scratch + y_rows_), tensors[1] = weights(args), tensors[2] = rows;
        inner.accumulate = 0;
        dense_->run(inner);
        return x_.scatter(rows, at(2), adds);
      }
      default:
        tensors[0] = gathered(x_, at(0), scratch + x_rows_), tensors[1] = gathered(y_, at(1), scratch + y_rows_);
        tensors[2] = scratch + gradient_, tensors[3] = d_.bias ? args.tensors[3] : nullptr;
        inner.accumulate = args.accumulate & ~4U;
        dense_->run(inner);
        return (adds ? add_ : unpack_).run({scratch + gradient_, args.tensors[2]});
    }
  }

 private:
  using Extents = dnnl::memory::dims;
  Extents weight_extents() const { return {d_.K, d_.C, d_.kernel.d * d_.kernel.h * d_.kernel.w}; }
  Desc plain() const { return {weight_extents(), kF32, dnnl::memory::format_tag::abc}; }
  Desc by_cell() const { return {weight_extents(), kF32, dnnl::memory::format_tag::acb}; }
  std::size_t rows_of(const WindowRows& side) {
    return side.in_place() ? 0 : plan_.take(static_cast<std::size_t>(side.elems()) * sizeof(T));
  }
  void* weights(const OpArgs& args) { return const_cast<void*>(weights_.get(args.tensors[1], args.parameter_version)); }
  static T* gathered(const WindowRows& side, T* activation, std::byte* scratch) {
    if (side.in_place()) return activation;
    auto* rows = reinterpret_cast<T*>(scratch);
    side.gather(activation, rows);
    return rows;
  }

  OpKind kind_;
  ConvDims d_;
  WindowRows x_, y_;
  std::unique_ptr<Op> dense_;
  ScratchPlan plan_;
  PackedWeights weights_;
  Primitive unpack_, add_;
  std::size_t x_rows_, y_rows_, gradient_, inner_;
};

}  // namespace

std::unique_ptr<Op> make_point_conv(const Context& context, const OpSpec& spec, const Precision& precision) {
  const auto& d = std::get<ConvDims>(spec.dims);
  const bool point =
      d.in.rank == 2 && d.kernel.h == 1 && d.kernel.w == 1 && d.pad.h == 0 && d.pad.w == 0 && d.groups == 1;
  if (spec.kind != OpKind::conv_backward_data || !point || !context.amx()) return nullptr;
  if (!precision.bf16() || !precision.stores_halves()) return nullptr;
  if (spec.layouts[0] != Layout::channels_last || spec.layouts[2] != Layout::channels_last) return nullptr;
  auto product = std::make_unique<PointBackwardData>(context, d);
  return product->implementation().starts_with("brg") ? std::move(product) : nullptr;
}

bool computes_windows(const ConvDims& d, const Precision& precision) {
  const bool strided = d.stride.d > 1 || d.stride.h > 1 || d.stride.w > 1;
  return d.in.rank == 3 && strided && has_disjoint_windows(d) && (precision.bf16() || !precision.stores_halves());
}

std::unique_ptr<Op> make_window_conv(Context& context, const OpSpec& spec, const Precision& precision) {
  const auto& d = std::get<ConvDims>(spec.dims);
  if (!computes_windows(d, precision)) return nullptr;
  const bool forward = spec.kind == OpKind::conv_forward, data = spec.kind == OpKind::conv_backward_data;
  const int x_arg = data ? 2 : 0, y_arg = forward ? (d.bias ? 3 : 2) : data ? 0 : 1;
  const auto x = WindowRows::of_x(d, spec.layouts[x_arg], context.threads);
  const auto y = WindowRows::of_y(d, spec.layouts[y_arg], context.threads);
  OpSpec dense{.kind = forward ? OpKind::dense_forward
                       : data  ? OpKind::dense_backward_data
                               : OpKind::dense_backward_weights,
               .dtype = spec.dtype,
               .dims = DenseDims{.N = x.rows(), .F = x.columns(), .K = d.K, .bias = d.bias}};
  auto product = precision.rounds ? make_half_dense(context, dense, precision) : make_dense(context, dense);
  if (precision.stores_halves() && precision.bf16())
    return std::make_unique<WindowConv<BHalf>>(spec, x, y, context, std::move(product));
  return std::make_unique<WindowConv<float>>(spec, x, y, context, std::move(product));
}

}  // namespace echelon::inline device::onednn
