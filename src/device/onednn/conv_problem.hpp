// SPDX-License-Identifier: Apache-2.0
// The library's view of one convolution: the descriptors of its three directions. A series is an image of height 1 to
// the library, a volume is one of its own.
#pragma once

#include <span>
#include <string>

#include "device/onednn/library.hpp"
#include "device/onednn/ops.hpp"

namespace echelon::inline device::onednn {

// Whether an implementation of the library is plain code.
inline bool falls_back(const std::string& implementation) { return implementation.find("ref") != std::string::npos; }

struct ConvProblem {
  using Desc = dnnl::memory::desc;
  using Extents = dnnl::memory::dims;
  using Type = dnnl::memory::data_type;
  using Tag = dnnl::memory::format_tag;
  static constexpr auto kDirect = dnnl::algorithm::convolution_direct;

  ConvProblem(const ConvDims& d, const Precision& precision)
      : x(listed(d, {d.N, d.C}, d.in)),
        y(listed(d, {d.N, d.K}, d.out())),
        w(listed(d, d.groups > 1 ? Extents{d.groups, d.K / d.groups, d.C / d.groups} : Extents{d.K, d.C}, d.kernel)),
        groups(d.groups),
        strides(listed(d, {}, d.stride)),
        dilates(listed(d, {}, d.dil)),
        pads(listed(d, {}, d.pad)),
        type(precision.type),
        volume(d.in.rank > 2),
        plain_w(w, Type::f32,
                volume         ? (d.groups > 1 ? Tag::goidhw : Tag::oidhw)
                : d.groups > 1 ? Tag::goihw
                               : Tag::oihw),
        any_w(w, type, Tag::any),
        any_dw(w, Type::f32, Tag::any) {
    for (std::int64_t& dilation : dilates) --dilation;  // the library counts the cells left out
    if (d.bias) b = Desc({d.K}, Type::f32, Tag::a);
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  }

  dnnl::convolution_forward::primitive_desc forward(const Context& context, const Desc& xd, const Desc& yd) const {
    return described<dnnl::convolution_forward>(context.engine, attributes, dnnl::prop_kind::forward_training, kDirect,
                                                xd, any_w, b, yd, strides, dilates, pads, pads);
  }
  dnnl::convolution_backward_data::primitive_desc backward_data(const Context& context, const Desc& xd,
                                                                const Desc& yd) const {
    return described_backward<dnnl::convolution_backward_data>(context.engine, attributes,
                                                               forward(context, multiplied(xd), multiplied(yd)),
                                                               kDirect, xd, any_w, yd, strides, dilates, pads, pads);
  }
  dnnl::convolution_backward_weights::primitive_desc backward_weights(const Context& context, const Desc& xd,
                                                                      const Desc& yd) const {
    return described_backward<dnnl::convolution_backward_weights>(
        context.engine, attributes, forward(context, multiplied(xd), multiplied(yd)), kDirect, xd, any_dw, b, yd,
        strides, dilates, pads, pads);
  }

  // The descriptor of an activation of these extents, x or y.
  static Desc activation(const Extents& extents, Layout layout, Type stored) {
    return describe(Shape(std::span<const std::int64_t>(extents)), layout, stored);
  }
  // The descriptor of activation `outer` in the type of the product.
  Desc multiplied(const Desc& outer) const { return with_type(outer, type); }

  Extents x, y, w;
  std::int64_t groups;
  Extents strides, dilates, pads;
  Type type;    // type of activations and weights in the product; sums, biases and gradients are f32
  bool volume;  // x and y are (N, C, D, H, W)
  Desc plain_w, any_w, any_dw, b;
  dnnl::primitive_attr attributes;

 private:
  template <std::int64_t kUnused>
  static Extents listed(const ConvDims& d, Extents front, const PerAxis<kUnused>& values) {
    if (d.in.rank > 2) front.push_back(values.d);
    front.insert(front.end(), {values.h, values.w});
    return front;
  }
};

}  // namespace echelon::inline device::onednn
