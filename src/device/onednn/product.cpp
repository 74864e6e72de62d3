// SPDX-License-Identifier: Apache-2.0
#include "device/onednn/product.hpp"

#include "base/check.hpp"

namespace echelon::inline device::onednn {

Product::Product(const Context& context, const Precision& precision, const Factor& a, const Factor& b, const Factor& c,
                 const Form& form, ScratchPlan& scratch)
    : precision_(precision), threads_(context.threads), packs_(form.weights) {
  using Desc = dnnl::memory::desc;
  constexpr auto f32 = dnnl::memory::data_type::f32;
  if (precision.bf16() && context.tiles()) {
    tiles_.emplace(context.device,
                   TileProductForm{
                       .a = {a.lines(true), a.rows, a.columns, true, a.transposed},
                       .b = {b.lines(!packs_), b.columns, b.rows, false, !b.transposed},
                       .c = {form.stored != f32, c.stride, c.inner, c.outer},
                       .weights = packs_,
                       .threads = context.threads,
                       .same_left = form.same_left ? &*form.same_left->tiles_ : nullptr,
                   },
                   scratch);
    return;
  }
  const auto rounds = [&](const Factor& factor) {
    const auto bytes = static_cast<std::size_t>(factor.elems()) * precision.bytes();
    return factor.wide && precision.rounds ? Rounded{factor.elems(), scratch.take(bytes)} : Rounded{};
  };
  a_ = rounds(a);
  if (!packs_) b_ = rounds(b);
  const Desc src = a.desc(precision.type), dst = c.desc(form.stored);
  const Desc bias = form.bias ? Desc({1, c.columns}, f32, dnnl::memory::format_tag::ab) : Desc();
  Desc weights = b.desc(precision.type);
  if (packs_) weights = Desc(extents_of(weights), precision.type, dnnl::memory::format_tag::any);
  const auto build = [&](const dnnl::primitive_attr& attributes) {
    const auto desc = form.bias ? described<dnnl::matmul>(context.engine, attributes, src, weights, bias, dst)
                                : described<dnnl::matmul>(context.engine, attributes, src, weights, dst);
    weights = desc.weights_desc();
    if (implementation_.empty()) implementation_ = desc.impl_info_str();
    return Primitive(context, dnnl::matmul(desc),
                     {{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, dst}});
  };
  body_ = build({});
  if (packs_) weights_ = PackedWeights(context, b.desc(f32), weights, precision);
  if (!form.adds) return;
  dnnl::post_ops sum;
  sum.append_sum(1.0f);
  dnnl::primitive_attr adding;
  adding.set_post_ops(sum);
  add_ = build(adding);
}

void Product::share_weights(const Product& other) {
  if (tiles_ && other.tiles_) tiles_->share(*other.tiles_);
  weights_.share(other.weights_);
}

const void* Product::operand(const Rounded& rounded, const void* given, std::byte* scratch) const {
  if (rounded.elems == 0) return given;
  round_operand(precision_, static_cast<const float*>(given), scratch + rounded.at, rounded.elems, threads_);
  return scratch + rounded.at;
}

void Product::run(const ProductArgs& args) {
  if (tiles_) return tiles_->run(args);
  ECHELON_CHECK_EQ(args.rows, 0);
  const void* right = packs_ ? weights_.get(args.b, args.version) : operand(b_, args.b, args.scratch);
  (args.add ? add_ : body_).run({operand(a_, args.a, args.scratch), right, args.bias, args.c});
}

}  // namespace echelon::inline device::onednn
