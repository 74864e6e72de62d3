// The bodies of the CUDA device, built from specs whose arguments have been checked.
#pragma once

#include <memory>
#include <string_view>

#include "cuda/context.hpp"
#include "device/device_codec.hpp"
#include "device/op.hpp"
#include "device/update_rules/rule.hpp"
#include "device/vector.hpp"

namespace echelon::inline device {
class Update;
}

namespace echelon::cuda {

std::unique_ptr<Op> make_conv(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_dense(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_pool(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_norm(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_softmax(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_softmax_part(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_dropout(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_concat(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_slice(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_lrn(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_layer_norm(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_value_loss(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_attention(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_sequence_pool(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_broadcast(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_rnn(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_rnn_step(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_place_step(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_embedding(const Context& context, const OpSpec& spec);
std::unique_ptr<Op> make_elementwise(const Context& context, const OpSpec& spec);  // activation, add
std::unique_ptr<Op> make_reorder(const Context& context, const OpSpec& spec);

std::unique_ptr<Update> make_update(const Context& context, std::string_view rule, DType dtype);
std::unique_ptr<VectorOps> make_vector_ops(const Context& context);
std::unique_ptr<DeviceCodec> make_codec(const Context& context, const DeviceCodecSpec& spec);

}  // namespace echelon::cuda
