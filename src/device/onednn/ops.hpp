// What the op bodies of this device share: the library's engine, the ISA, threads; and one factory a family of kinds.
#pragma once

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

#include "device/device.hpp"
#include "device/onednn/halves.hpp"

namespace echelon::inline device::onednn {

// The library's engine, of which every use of it begins: it takes no instructions that max_isa() withholds.
dnnl::engine cpu_engine();

struct Context {
  Device& device;  // for memory that an op holds (packed weights)
  int threads = 1;
  dnnl::engine engine = cpu_engine();
  dnnl::stream stream{engine};

  // The layout whose blocks are one vector register of the best ISA that the library uses here.
  Layout blocked() const;
  bool avx512() const;
  // Whether the library multiplies bf16 by instructions for it.
  bool avx512_bf16() const;
  // Whether it does so in matrix units (AMX).
  bool amx() const;
  // Whether products of our own do so, too (tiles.hpp).
  bool tiles() const;
};

// The library takes its team from the calling thread's OpenMP setting, when a primitive is built and when it runs. It
// must get all of it: OMP_DYNAMIC is switched off.
void claim_threads(int threads);

// The library's descriptor of an activation.
dnnl::memory::desc describe(const Shape& shape, Layout layout,
                            dnnl::memory::data_type type = dnnl::memory::data_type::f32);

// make_conv(context, spec), make_pool(context, spec), ..: one for each family of device/ops/list.hpp. The spec is of
// the family, of f32, and its signature holds. dnnl::error where the library refuses.
#define F(family, family_dims, kinds) std::unique_ptr<Op> make_##family(Context& context, const OpSpec& spec);
ECHELON_OP_FAMILIES(F)
#undef F

// Of kinds that multiply in halves: arguments in precision.stored, or, for recurrent layers, in f32 whatever it is; in
// bf16 only where there are tiles. Parameters and their gradients are f32. The spec is of f32 or bf16.
std::unique_ptr<Op> make_conv(Context& context, const OpSpec& spec, const Precision& precision);
// The backward of a 1x1 convolution in halves as a product; null where that is not known to be faster.
std::unique_ptr<Op> make_point_conv(const Context& context, const OpSpec& spec, const Precision& precision);
std::unique_ptr<Op> make_half_dense(Context& context, const OpSpec& spec, const Precision& precision);
std::unique_ptr<Op> make_rnn(Context& context, const OpSpec& spec, const Precision& precision);

// Runs `inner`, made for the same spec in f32, on arguments of which some are bf16.
std::unique_ptr<Op> make_half_op(Context& context, const OpSpec& spec, std::unique_ptr<Op> inner);
// ReLU or a sum of bf16; null for other activations.
std::unique_ptr<Op> make_half_elementwise(Context& context, const OpSpec& spec);
// Whether make_pool takes bf16 as it is: not where cells add shares of many windows, each rounded, or where windows
// are of more than a byte's cells.
bool pools_halves(const OpSpec& spec);
// A reorder from or to bf16, or both. `native`: the library reorders bf16 by itself.
std::unique_ptr<Op> make_half_reorder(Context& context, const OpSpec& spec, bool native);

// The layouts of x and y in which all directions of a convolution run fast.
struct ConvLayouts {
  Layout x, y;
};
ConvLayouts best_conv_layouts(const Context& context, const ConvDims& dims, const Precision& precision = kSingle);

}  // namespace echelon::inline device::onednn
