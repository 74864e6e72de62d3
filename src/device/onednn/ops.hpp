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

std::unique_ptr<Op> make_conv(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_pool(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_dense(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_activation(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_norm(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_softmax(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_softmax_part(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_dropout(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_concat(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_slice(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_lrn(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_layer_norm(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_value_loss(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_attention(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_sequence_pool(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_broadcast(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_rnn(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_rnn_step(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_place_step(const OpSpec& spec);
std::unique_ptr<Op> make_embedding(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_elementwise(Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_reorder(Context& context, const OpSpec& spec);

// The layouts of x and y in which all directions of a convolution run fast.
struct ConvLayouts {
  Layout x, y;
};
ConvLayouts best_conv_layouts(const Context& context, const ConvDims& dims);

}  // namespace echelon::inline device::onednn
