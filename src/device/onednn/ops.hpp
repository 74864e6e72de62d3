// SPDX-License-Identifier: Apache-2.0
// Common to the ops of this device: the library's engine, the ISA, threads; and one factory for each family of kinds.
#pragma once

#include <memory>

#include "base/check.hpp"
#include "device/device.hpp"
#include "device/onednn/halves.hpp"
#include "device/onednn/library.hpp"

namespace echelon::inline device::onednn {

// The library's engine. Every use of the library starts here, so that it uses no instructions beyond max_isa().
dnnl::engine cpu_engine();

struct Context {
  Device& device;  // for memory that an op keeps (packed weights)
  int threads = 1;
  ConvTable convs = {};  // convolutions whose layout or implementation was measured
  dnnl::engine engine = cpu_engine();
  dnnl::stream stream{engine};

  // The layout whose blocks fill one vector register of the best ISA that the library uses here.
  Layout blocked() const;
  bool avx512() const;
  // Whether the library has instructions to multiply bf16.
  bool avx512_bf16() const;
  // Whether it uses matrix units (AMX) for that.
  bool amx() const;
  // Whether our own products use them, too (tiles.hpp).
  bool tiles() const;
};

// Sets the size of the thread team. The library takes it from the calling thread's OpenMP setting when a primitive is
// built and when it runs, and must get the whole team: OMP_DYNAMIC is switched off.
void claim_threads(int threads);

// The library's descriptor of an activation.
dnnl::memory::desc describe(const Shape& shape, Layout layout,
                            dnnl::memory::data_type type = dnnl::memory::data_type::f32);

// make_conv(context, spec), make_pool(context, spec), ..: one for each family of device/ops/list.hpp. The spec must be
// of that family, and its signature must be valid. The spec is of f32, or of bf16 if computes_in_halves and the family
// neither multiplies nor says otherwise below. Throws dnnl::error if the library refuses.
#define F(family, family_dims, kinds) std::unique_ptr<Op> make_##family(Context& context, const OpSpec& spec);
ECHELON_OP_FAMILIES(F)
#undef F

// Makes Body<T> of these arguments, where T stores activations of `dtype`: float or BHalf.
template <template <class> class Body, class... Args>
std::unique_ptr<Op> make_stored(DType dtype, const Args&... args) {
  ECHELON_CHECK(dtype != DType::f16, "a body of bf16 cannot compute in f16");
  if (is_half(dtype)) return std::make_unique<Body<BHalf>>(args...);
  return std::make_unique<Body<float>>(args...);
}
inline dnnl::memory::data_type library_type(DType dtype) {
  return dtype == DType::bf16  ? dnnl::memory::data_type::bf16
         : dtype == DType::f16 ? dnnl::memory::data_type::f16
                               : dnnl::memory::data_type::f32;
}
// Calls body(T{}) with the type that holds halves of `dtype`.
template <class Body>
decltype(auto) with_half(DType dtype, const Body& body) {
  return dtype == DType::f16 ? body(IeeeHalf{}) : body(BHalf{});
}

// Kinds that multiply in halves: arguments are in precision.stored, except that recurrent layers, in bf16 only, have
// f32 arguments unless there are tiles. Parameters and their gradients are f32. The spec is of f32 or halves.
std::unique_ptr<Op> make_conv(Context& context, const OpSpec& spec, const Precision& precision);
// The gradient of the data of a 1x1 convolution in halves as a product; null if that is not known to be faster.
std::unique_ptr<Op> make_point_conv(const Context& context, const OpSpec& spec, const Precision& precision);
// A strided convolution of volumes whose windows do not overlap, as a product; else null.
std::unique_ptr<Op> make_window_conv(Context& context, const OpSpec& spec, const Precision& precision);
bool computes_windows(const ConvDims& dims, const Precision& precision);
std::unique_ptr<Op> make_half_dense(Context& context, const OpSpec& spec, const Precision& precision);
std::unique_ptr<Op> make_rnn(Context& context, const OpSpec& spec, const Precision& precision);

// Runs `inner`, which was made for the same spec in f32, on arguments of which some are halves of one type.
std::unique_ptr<Op> make_half_op(Context& context, const OpSpec& spec, std::unique_ptr<Op> inner);
// Whether make_pool takes bf16 directly: not if cells add shares of many windows, each of them rounded, nor if windows
// have more cells than a byte can count.
bool pools_halves(const OpSpec& spec);
// A reorder from or to halves, or both. `native`: the library itself reorders them.
std::unique_ptr<Op> make_half_reorder(Context& context, const OpSpec& spec, bool native);

// The layouts of x and y in which all directions of a convolution run fast; those of context.convs, if they do.
// Products of windows keep `given`, the layout of the input.
struct ConvLayouts {
  Layout x, y;
};
ConvLayouts best_conv_layouts(const Context& context, const ConvDims& dims, const Precision& precision = kSingle,
                              Layout given = Layout::plain);

}  // namespace echelon::inline device::onednn
