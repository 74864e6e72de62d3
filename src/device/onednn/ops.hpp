// What the op bodies of this device share: the library's engine, the ISA, threads; and one factory a family of kinds.
#pragma once

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

#include "device/device.hpp"

namespace echelon::inline device::onednn {

struct Context {
  Device& device;  // for memory that an op holds (packed weights)
  int threads = 1;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};

  // The layout whose blocks are one vector register of the best ISA that the library uses here.
  Layout blocked() const;
  bool avx512() const;
};

// The library takes its team from the calling thread's OpenMP setting, when a primitive is built and when it runs.
void claim_threads(int threads);

// The library's descriptor of an f32 activation.
dnnl::memory::desc describe(const Shape& shape, Layout layout);

// make_conv(context, spec), make_pool(context, spec), ..: one for each family of device/ops/list.hpp. The spec is of
// the family, of f32, and its signature holds. dnnl::error where the library refuses.
#define F(family, family_dims, kinds) std::unique_ptr<Op> make_##family(Context& context, const OpSpec& spec);
ECHELON_OP_FAMILIES(F)
#undef F

// The layouts of x and y in which all directions of a convolution run fast.
struct ConvLayouts {
  Layout x, y;
};
ConvLayouts best_conv_layouts(const Context& context, const ConvDims& dims);

}  // namespace echelon::inline device::onednn
