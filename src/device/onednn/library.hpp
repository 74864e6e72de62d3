// SPDX-License-Identifier: Apache-2.0
// oneDNN, and all that differs between its versions 2.6 and 3.x: how primitives and memory are described.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "base/check.hpp"

namespace echelon::inline device::onednn {

#if DNNL_VERSION_MAJOR >= 3

// The instructions by which the library multiplies f16; none in versions that do not.
inline constexpr std::optional<dnnl::cpu_isa> kF16Isa = dnnl::cpu_isa::avx512_core_amx_fp16;

// Describes a primitive; the arguments are those of the library's descriptors.
template <class Primitive, class... Args>
typename Primitive::primitive_desc described(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                             const Args&... args) {
  return {engine, args..., attributes};
}
// The same for a backward primitive; `forward` describes the forward one.
template <class Primitive, class Forward, class... Args>
typename Primitive::primitive_desc described_backward(const dnnl::engine& engine,
                                                      const dnnl::primitive_attr& attributes, const Forward& forward,
                                                      const Args&... args) {
  return {engine, args..., forward, attributes};
}

// y = f(x) of one descriptor for both.
inline dnnl::eltwise_forward::primitive_desc described_eltwise(const dnnl::engine& engine, dnnl::algorithm function,
                                                               const dnnl::memory::desc& x, float alpha = 0.0f) {
  return {engine, dnnl::prop_kind::forward_training, function, x, x, alpha, 0.0f};
}
inline dnnl::eltwise_backward::primitive_desc described_eltwise_backward(
    const dnnl::engine& engine, dnnl::algorithm function, const dnnl::memory::desc& x,
    const dnnl::eltwise_forward::primitive_desc& forward) {
  return {engine, function, x, x, x, 0.0f, 0.0f, forward};
}

inline dnnl::memory::data_type type_of(const dnnl::memory::desc& desc) { return desc.get_data_type(); }
inline dnnl::memory::dims extents_of(const dnnl::memory::desc& desc) { return desc.get_dims(); }
// The same extents and format in another type; of activations.
inline dnnl::memory::desc with_type(const dnnl::memory::desc& desc, dnnl::memory::data_type type) {
  using Tag = dnnl::memory::format_tag;
  if (desc.get_format_kind() == dnnl::memory::format_kind::any) return {desc.get_dims(), type, Tag::any};
  if (desc.get_inner_nblks() == 0) return {desc.get_dims(), type, desc.get_strides()};
  const bool wide = desc.get_inner_blks()[0] == 16;
  if (desc.get_ndims() == 5) return {desc.get_dims(), type, wide ? Tag::nCdhw16c : Tag::nCdhw8c};
  return {desc.get_dims(), type, wide ? Tag::nChw16c : Tag::nChw8c};
}

#else

inline constexpr std::optional<dnnl::cpu_isa> kF16Isa = std::nullopt;

template <class Primitive, class... Args>
typename Primitive::primitive_desc described(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                             const Args&... args) {
  return {typename Primitive::desc(args...), attributes, engine};
}
template <class Primitive, class Forward, class... Args>
typename Primitive::primitive_desc described_backward(const dnnl::engine& engine,
                                                      const dnnl::primitive_attr& attributes, const Forward& forward,
                                                      const Args&... args) {
  return {typename Primitive::desc(args...), attributes, engine, forward};
}

inline dnnl::eltwise_forward::primitive_desc described_eltwise(const dnnl::engine& engine, dnnl::algorithm function,
                                                               const dnnl::memory::desc& x, float alpha = 0.0f) {
  return {{dnnl::prop_kind::forward_training, function, x, alpha, 0.0f}, engine};
}
inline dnnl::eltwise_backward::primitive_desc described_eltwise_backward(
    const dnnl::engine& engine, dnnl::algorithm function, const dnnl::memory::desc& x,
    const dnnl::eltwise_forward::primitive_desc& forward) {
  return {{function, x, x, 0.0f, 0.0f}, engine, forward};
}

inline dnnl::memory::data_type type_of(const dnnl::memory::desc& desc) { return desc.data_type(); }
inline dnnl::memory::dims extents_of(const dnnl::memory::desc& desc) { return desc.dims(); }
inline dnnl::memory::desc with_type(dnnl::memory::desc desc, dnnl::memory::data_type type) {
  desc.data.data_type = dnnl::memory::convert_to_c(type);
  return desc;
}

#endif

}  // namespace echelon::inline device::onednn
