#include "device/onednn/product.hpp"

namespace echelon::inline device::onednn {

Product::Product(const Context& context, const Precision& precision, const Factor& a, const Factor& b, const Factor& c,
                 const Form& form)
    : packs_(form.weights) {
  using Desc = dnnl::memory::desc;
  constexpr auto f32 = dnnl::memory::data_type::f32;
  const Desc src = a.desc(precision.type), dst = c.desc(form.stored);
  const Desc bias = form.bias ? Desc({1, c.columns}, f32, dnnl::memory::format_tag::ab) : Desc();
  Desc weights = b.desc(precision.type);
  if (packs_) weights = Desc(weights.dims(), precision.type, dnnl::memory::format_tag::any);
  const auto build = [&](const dnnl::primitive_attr& attributes) {
    const dnnl::matmul::desc op =
        form.bias ? dnnl::matmul::desc(src, weights, bias, dst) : dnnl::matmul::desc(src, weights, dst);
    const dnnl::matmul::primitive_desc desc(op, attributes, context.engine);
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

void Product::run(const void* a, const void* b, void* c, bool add, std::uint64_t version, const void* bias) {
  const void* right = packs_ ? weights_.get(b, version) : b;
  (add ? add_ : body_).run({a, right, bias, c});
}

}  // namespace echelon::inline device::onednn
